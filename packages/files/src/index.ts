// Everything listed here is public API.
export {};

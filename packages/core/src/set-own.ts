/**
 * Sets an own property. Assigning to `__proto__` would set the prototype; defining it makes an own key, as
 * `JSON.parse` does.
 */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
}

/* Stands for an identity provider: it says who issued a token, and for whom. All people use one host. */

const people = new Map([
  ["ada-laptop", "ada"],
  ["ada-phone", "ada"],
  ["eve-laptop", "eve"],
]);

/** What a token says; `undefined` for one that nobody issued. */
export function whoHas(token: string) {
  const sub = people.get(token);
  if (sub === undefined) return undefined;
  return {
    token,
    clientId: "the-host",
    scopes: [],
    expiresAt: Math.floor(Date.now() / 1_000) + 3_600,
    extra: { iss: "https://id.example", sub },
  };
}

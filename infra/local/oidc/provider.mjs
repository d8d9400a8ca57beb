// The issuer of the tests: one line of JSON on standard input says how, one on standard output where.
// Its sign-in page takes any name; what groups a name has stands in `people`.
import { createInterface } from 'node:readline';
import { Provider } from 'oidc-provider';

const line = await new Promise((resolve) => createInterface({ input: process.stdin }).once('line', resolve));
const { port, host = '127.0.0.1', clients, jwks, people } = JSON.parse(line);
console.warn = () => {};

const provider = new Provider(`http://${host}:${port}`, {
  clients,
  jwks,
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'groups'],
  // In the ID token itself, as most issuers of companies do.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({ sub, preferred_username: sub, groups: people[sub] ?? [] }),
  }),
  cookies: { keys: ['only for tests'] },
});
const server = provider.listen(port, host, () => console.log(JSON.stringify({ port: server.address().port })));

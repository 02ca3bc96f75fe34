/** Users with passwords, and the signed cookie of a login. */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

const lifetimeMs = 8 * 60 * 60 * 1000

/** `{ name: { tenant, salt, hash } }`. A real server reads its users from its database. */
const users = JSON.parse(readFileSync(new URL('users.json', import.meta.url), 'utf8'))
/** Processes that serve the same users need the same secret. Without one, logins end with the process. */
const secret = process.env.SESSION_SECRET ?? randomBytes(32)

/** Returns the user with this password, or null. An unknown name takes as long as a wrong password. */
export async function checkPassword(name, password) {
  const { tenant, salt, hash } = Object.hasOwn(users, name)
    ? users[name]
    : { tenant: null, salt: '', hash: '' }
  const actual = await promisify(scrypt)(String(password), salt, 32)
  const expected = Buffer.alloc(32, hash, 'base64')
  return timingSafeEqual(actual, expected) && tenant !== null ? { name, tenant } : null
}

const sign = (text) => createHmac('sha256', secret).update(text).digest()

/** The value of `set-cookie` for a user. Null logs out. */
export function createCookie(user) {
  const attributes = 'Path=/; HttpOnly; SameSite=Strict'
  if (user === null) return `login=; Max-Age=0; ${attributes}`
  const until = Date.now() + lifetimeMs
  const text = Buffer.from(JSON.stringify({ ...user, until })).toString('base64url')
  return `login=${text}.${sign(text).toString('base64url')}; Max-Age=${lifetimeMs / 1000}; ${attributes}`
}

/** The user of a request, or null if its cookie is missing, expired or not signed by this server. */
export function readUser(request) {
  const [, text, signature] =
    /(?:^|; )login=([\w-]+)\.([\w-]+)/.exec(request.headers.get('cookie') ?? '') ?? []
  if (text === undefined) return null
  const actual = Buffer.from(signature, 'base64url')
  const expected = sign(text)
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return null
  const { name, tenant, until } = JSON.parse(Buffer.from(text, 'base64url').toString())
  return until > Date.now() ? { name, tenant } : null
}

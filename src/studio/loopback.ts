import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, StatewrightError } from '../core/base/errors.js'

export function newSecret(): string {
  return randomBytes(24).toString('base64url')
}

/** Compares in constant time. */
export function isSecret(actual: string, expected: string): boolean {
  const [a, b] = [Buffer.from(actual), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Null for an address without a token. */
export function readToken({ url = '' }: IncomingMessage): string | null {
  return url.startsWith('/?token=') ? url.slice('/?token='.length) : null
}

export function hasToken(request: IncomingMessage, token: string): boolean {
  return isSecret(readToken(request) ?? '', token)
}

/** Rejecting other host names prevents DNS rebinding. */
export function isForHere({ headers: { host = '' } }: IncomingMessage, port: number): boolean {
  return hosts.some((name) => host === `${name}:${port}`)
}

/** Programs send no origin. */
export function isFromHere({ headers: { origin } }: IncomingMessage, port: number): boolean {
  return origin === undefined || hosts.some((name) => origin === `http://${name}:${port}`)
}

const hosts = ['127.0.0.1', 'localhost']

/**
 * @throws {ConfigError} `invalid_config` for an invalid port
 * @throws {StatewrightError} `cannot_listen`
 */
export function listenHere(server: Server, port: unknown, who: string): Promise<number> {
  if (!isPort(port)) {
    const text = `port must be an integer from 0 (any free port) to 65535. It is ${typeof port === 'number' ? port : `of type ${typeof port}`}.`
    return Promise.reject(new ConfigError('invalid_config', text, 'port'))
  }
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const text = `${who} cannot listen on 127.0.0.1:${port}: ${error.message}. Choose another port, or 0 for any free port.`
      reject(new StatewrightError('cannot_listen', text, 'port', { cause: error }))
    })
    server.listen(port, '127.0.0.1', () => {
      resolve((server.address() as AddressInfo).port)
    })
  })
}

const isPort = (port: unknown): port is number =>
  typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535

export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

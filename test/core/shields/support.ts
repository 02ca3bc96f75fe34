import { ConfigError } from '../../../src/core/base/errors.js'
import { type Shield, type ShieldContext, type ShieldVerdict } from '../../../src/core/shields/index.js'

/** The message of a config error. Throws when there is none. */
export function refusal(make: () => unknown): ConfigError {
  try {
    make()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

/** A shield's verdict in isolation. */
export async function verdictOf(
  shield: Shield,
  content: string,
  question: Partial<ShieldContext> = {},
): Promise<ShieldVerdict> {
  return shield.check(content, { point: 'output', signal: new AbortController().signal, ...question })
}

/** A text after a redacting shield. */
export async function redactedBy(shield: Shield, content: string): Promise<string> {
  const verdict = await verdictOf(shield, content)
  return verdict.action === 'redact' ? verdict.content : content
}

/** A promise and its resolver. */
export function pending(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

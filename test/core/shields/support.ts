import { ConfigError } from '../../../src/core/base/errors.js'
import { type Shield, type ShieldContext, type ShieldVerdict } from '../../../src/core/shields/index.js'

/** What a config error says; throws when there is none. */
export function refusal(make: () => unknown): ConfigError {
  try {
    make()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

/** What a shield says by itself. */
export async function verdictOf(
  shield: Shield,
  content: string,
  question: Partial<ShieldContext> = {},
): Promise<ShieldVerdict> {
  return shield.check(content, { point: 'output', signal: new AbortController().signal, ...question })
}

/** What a redacting shield makes of a text. */
export async function redactedBy(shield: Shield, content: string): Promise<string> {
  const verdict = await verdictOf(shield, content)
  return verdict.action === 'redact' ? verdict.content : content
}

/** A promise, and what resolves it. */
export function pending(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

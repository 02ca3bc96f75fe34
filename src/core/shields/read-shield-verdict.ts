import { truncate } from '../../../guards/lib/cut.js'

/** A verdict, checked. */
export type CheckedShieldVerdict =
  | { action: 'allow' | 'warn' | 'block'; message: string | null }
  | { action: 'redact'; message: string | null; content: string }

const longestMessage = 2000

/**
 * Reads what `check()` returned; a sentence about what is wrong with it when it is no verdict. A verdict with an
 * unreadable message still counts: it must not turn a block into a mere failure.
 */
export function readShieldVerdict(value: unknown): CheckedShieldVerdict | { problem: string } {
  if (typeof value !== 'object' || value === null) {
    const shown =
      value === null || typeof value === 'boolean' ? String(value) : `a value of type ${typeof value}`
    return { problem: `check() returned ${shown}; ${shapes}` }
  }
  const { action, message: said, content } = value as Record<string, unknown>
  const message = typeof said === 'string' && said.trim() !== '' ? truncate(said, longestMessage) : null
  if (action === 'allow' || action === 'warn' || action === 'block') return { action, message }
  if (action !== 'redact') return { problem: `check() returned an object whose action is none; ${shapes}` }
  if (typeof content !== 'string') {
    return { problem: `check() returned a redact without the redacted text; ${shapes}` }
  }
  return { action, message, content }
}

const shapes =
  "return { action: 'allow' | 'warn' | 'block', message? } or { action: 'redact', content, message? }"

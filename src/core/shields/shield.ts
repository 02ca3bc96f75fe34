import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'

export type { ShieldAction, ShieldPoint } from '../../../machines/agent/screening.js'

/** What a shield says of a content. `message` is for people, and is cut to 2,000 characters. */
export type ShieldVerdict =
  | { readonly action: 'allow' | 'warn' | 'block'; readonly message?: string }
  /** `content` takes the place of what was checked. */
  | { readonly action: 'redact'; readonly content: string; readonly message?: string }

/** What a content is about. */
export interface ShieldScene {
  readonly point: ShieldPoint
  /** The call and its tool, at `toolInput` and `toolOutput`. */
  readonly callId?: string | undefined
  readonly toolName?: string | undefined
  /** The app's own object, as it was handed to the run. */
  readonly context?: unknown
  /** The transcript that the content comes after. */
  readonly messages?: readonly Message[] | undefined
}

/**
 * What a shield is told beside the content.
 *
 * @example
 * defineShield({
 *   name: 'remote',
 *   check: async (content, { point, signal }: ShieldContext) => {
 *     const answer = await fetch('https://example.com/check', { method: 'POST', body: JSON.stringify({ content, point }), signal })
 *     return { action: answer.ok ? 'allow' : 'block' }
 *   },
 * })
 */
export interface ShieldContext extends ShieldScene {
  /** Aborts when the verdict is not needed any more: the run was stopped, or the time is over. */
  readonly signal: AbortSignal
}

/** Made by `defineShield`. */
export interface Shield {
  /** Unique among the shields of one point: 1 to 64 letters, digits, `_`, `-` and `.`. */
  readonly name: string
  /** Looks at a whole text and may take its time. What it throws counts as a failed check. */
  readonly check: (content: string, question: ShieldContext) => ShieldVerdict | Promise<ShieldVerdict>
  /** Milliseconds that a check may take: 1 to 2,147,483,647. Default: that of all shields, 10,000. */
  readonly timeoutMs?: number | undefined
}

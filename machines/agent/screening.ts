import type { AssistantMessage } from './messages.js'
import type { PolicyVerdict } from './approvals.js'
import type { ToolResult } from './batch-calls.js'

/** Where content is screened: user input, tool input, tool output, and answers. */
export type ShieldPoint = 'input' | 'toolInput' | 'toolOutput' | 'output'

/** Ordered from mildest to strongest. The strongest action applies. */
export type ShieldAction = 'allow' | 'warn' | 'redact' | 'block'

export interface ShieldFinding {
  shield: string
  action: ShieldAction
  message: string | null
  durationMs: number
}

export interface Screening {
  /** The strongest action. */
  action: ShieldAction
  /** The messages from the shields with the strongest action. Always set for `block`. */
  message: string | null
  /** The cleared content. Do not use it for `block`. */
  content: string
  /** The findings, one per shield, in list order. */
  findings: ShieldFinding[]
}

export interface InputScreening extends Screening {
  index: number
  /** Index of the part; null for a text message. */
  part: number | null
}

export interface CallScreening extends Screening {
  callId: string
  /** Replaces an unknown tool name that a shield objects to. */
  name?: string
  /** The media are omitted, because shields object to the text extracted from them. */
  withoutMedia?: true
  decisions?: PolicyVerdict[]
  /** The input shields' screening of a person's reason for rejecting the call. */
  asInput?: Omit<Screening, 'content'>
}

/** An uncleared answer. The transcript contains a masked message instead. */
export interface UnclearedAnswer {
  stepId: string
  text: string
  isRefusal: boolean
  /** The text is a piece of an answer that is continued. */
  isPiece: boolean
  /** The reasoning and other parts, which are already cleared. */
  reasoning?: Pick<
    AssistantMessage,
    'reasoning' | 'reasoning_details' | 'provider_items' | 'media' | 'annotations'
  >
  outputProblem?: string | null
}

export interface OutputScreening extends Screening {
  /** Why a redacted answer does not match the output schema. */
  outputProblem?: string | null
}

/** The cleared pieces of a truncated answer that is being continued. */
export interface ContinuedAnswer {
  text: string
  ids: string[]
}

export const withheldReasoning = '[Withheld: a shield refused this reasoning.]'
export const withheldAnswer = '[Withheld: no shield has cleared this answer.]'
export const withheldInput = '[Withheld: a shield refused this message.]'
export const unclearedInput = '[Withheld: no shield has cleared this message.]'
/** Replaces the parts of an answer that were already shown when a later part made the whole answer forbidden. */
export const refusedAnswer = '[Withheld: a shield refused this answer.]'
/** Replaces withheld arguments. Valid JSON, because messages with invalid arguments cannot be sent. */
export const withheldArguments = '{}'
/** Replaces the name of an unknown tool, because the model may have invented it. */
export const withheldName = 'withheld'
export const withheldResult = 'Withheld: no shield has cleared this result.'

export function isBlockVerdict(screening: unknown): boolean {
  const { action, content } = (screening ?? {}) as { action?: unknown; content?: unknown }
  return action === 'block' || typeof action !== 'string' || typeof content !== 'string'
}

/** Shields fail closed, so a message without a screening is blocked. */
export function isInputBlocked(screenings: readonly unknown[], index: number): boolean {
  const mine = screenings.filter((one) => (one as InputScreening | null)?.index === index)
  return mine.length === 0 || mine.some(isBlockVerdict)
}

/** Reads an actor's output as a list. Other values become an empty list, because actions must not throw. */
export function toList(output: unknown): readonly unknown[] {
  return Array.isArray(output) ? output : []
}

export const rejectionPrefix = 'Rejected by the user: '

export function findRejectionReason({
  status,
  content,
}: Pick<ToolResult, 'status' | 'content'>): string | null {
  const isReason = status === 'rejected' && content.startsWith(rejectionPrefix)
  return isReason ? content.slice(rejectionPrefix.length) : null
}

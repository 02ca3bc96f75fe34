import type { AssistantMessage } from './messages.js'
import type { PolicyVerdict } from './approvals.js'
import type { ToolResult } from './batch-calls.js'

/** Where content is screened: user input, tool input, tool output, and answers. */
export type ShieldPoint = 'input' | 'toolInput' | 'toolOutput' | 'output'

/** From mildest to strongest; the strongest wins. */
export type ShieldAction = 'allow' | 'warn' | 'redact' | 'block'

export interface ShieldFinding {
  shield: string
  action: ShieldAction
  message: string | null
  durationMs: number
}

/** The result of all shields at one point, as plain JSON. */
export interface Screening {
  /** The strongest action. */
  action: ShieldAction
  /** The messages for that action; always present for `block`. */
  message: string | null
  /** The cleared content; unusable for `block`. */
  content: string
  /** One per shield, in list order. */
  findings: ShieldFinding[]
}

/** The screening of a user message or of one of its parts. */
export interface InputScreening extends Screening {
  /** Index of the screened message. */
  index: number
  /** Index of the part; null for a text message. */
  part: number | null
}

/** The screening of a call's arguments or result. */
export interface CallScreening extends Screening {
  callId: string
  /** Replacement for an unknown tool name that a shield objects to. */
  name?: string
  /** Shields object to the readable text of its media, so they are omitted. */
  withoutMedia?: true
  /** The decisions of policies about new arguments. */
  decisions?: PolicyVerdict[]
  /** The input shields' screening of the reason, if a person rejected the call. */
  asInput?: Omit<Screening, 'content'>
}

/** An uncleared answer; the transcript has a masked message in its place. */
export interface UnclearedAnswer {
  stepId: string
  text: string
  /** The text is a refusal. */
  isRefusal: boolean
  /** The text is a piece of an answer that is continued. */
  isPiece: boolean
  /** Cleared already. */
  reasoning?: Pick<
    AssistantMessage,
    'reasoning' | 'reasoning_details' | 'provider_items' | 'media' | 'annotations'
  >
  /** Why the text does not match the output schema. */
  outputProblem?: string | null
}

/** The screening of an answer. */
export interface OutputScreening extends Screening {
  /** Why a redacted answer does not match the output schema. */
  outputProblem?: string | null
}

/** The pieces of a truncated answer that the shields have cleared. */
export interface ContinuedAnswer {
  /** The text as the model wrote it. */
  text: string
  /** Ids of the messages that contain the pieces. */
  ids: string[]
}

export const withheldReasoning = '[Withheld: a shield refused this reasoning.]'
export const withheldAnswer = '[Withheld: no shield has cleared this answer.]'
export const withheldInput = '[Withheld: a shield refused this message.]'
export const unclearedInput = '[Withheld: no shield has cleared this message.]'
/** Replaces an answer that was shown before a later part made the whole answer forbidden. */
export const refusedAnswer = '[Withheld: a shield refused this answer.]'
/** Valid JSON, so that a message with such a call can be sent. */
export const withheldArguments = '{}'
/** Replaces the name of an unknown tool, which the model may have invented. */
export const withheldName = 'withheld'
export const withheldResult = 'Withheld: no shield has cleared this result.'

/** An actor's output as a list; anything else becomes an empty list, because actions never throw. */
export function toList(output: unknown): readonly unknown[] {
  return Array.isArray(output) ? output : []
}

/** Precedes the reason in the result of a call that a person rejected. */
export const rejectionPrefix = 'Rejected by the user: '

/** The reason that a person gave for rejecting a call, or null for any other result. */
export function findRejectionReason({
  status,
  content,
}: Pick<ToolResult, 'status' | 'content'>): string | null {
  const isReason = status === 'rejected' && content.startsWith(rejectionPrefix)
  return isReason ? content.slice(rejectionPrefix.length) : null
}

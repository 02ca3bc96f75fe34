import type { AssistantMessage } from './messages.js'
import type { ToolResult } from './batch-calls.js'

/** Where content is screened: what the user says, what a tool is given, what it returns, what the model answers. */
export type ShieldPoint = 'input' | 'toolInput' | 'toolOutput' | 'output'

/** From the mildest to the one that wins. */
export type ShieldAction = 'allow' | 'warn' | 'redact' | 'block'

/** The finding of one shield. */
export interface ShieldFinding {
  shield: string
  action: ShieldAction
  message: string | null
  durationMs: number
}

/** The screening of a content by all shields of a point: plain JSON. */
export interface Screening {
  /** The gravest of all actions. */
  action: ShieldAction
  /** The messages that go with that action; always there when it is `block`. */
  message: string | null
  /** The cleared content; unusable when the action is `block`. */
  content: string
  /** One a shield, in list order. */
  findings: ShieldFinding[]
}

/** The screening of a user message, or of one part of it. */
export interface InputScreening extends Screening {
  /** Which of the messages that were screened, from 0. */
  index: number
  /** The part's index; null when the content is one text. */
  part: number | null
}

/** The screening of a call's arguments, or of its result. */
export interface CallScreening extends Screening {
  callId: string
  /** What stands in place of the call's name, where that is no tool's and a shield objects to it. */
  name?: string
  /** Shields have objected to what can be read of its pictures and documents: they are left out. */
  withoutMedia?: true
  /** The screening of the reason, by input shields, where a person rejected the call. */
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
  /** Why the text does not fit the output schema. */
  outputProblem?: string | null
}

/** The screening of an answer. */
export interface OutputScreening extends Screening {
  /** Why a redacted answer does not fit the output schema. */
  outputProblem?: string | null
}

/** The pieces of an answer that was cut off, as far as the shields have cleared them. */
export interface ContinuedAnswer {
  /** As the model said it. */
  text: string
  /** The messages that they are in. */
  ids: string[]
}

export const withheldReasoning = '[Withheld: a shield refused this reasoning.]'
export const withheldAnswer = '[Withheld: no shield has cleared this answer.]'
export const withheldInput = '[Withheld: a shield refused this message.]'
export const unclearedInput = '[Withheld: no shield has cleared this message.]'
/** Replaces an answer that was shown before a later part made the whole forbidden. */
export const refusedAnswer = '[Withheld: a shield refused this answer.]'
/** JSON text, so that a message with such a call can be sent. */
export const withheldArguments = '{}'
/** In place of a name that is no tool's: the model has made it up. */
export const withheldName = 'withheld'
export const withheldResult = 'Withheld: no shield has cleared this result.'

/** An actor's output as a list; anything else becomes an empty list, because actions never throw. */
export function toList(output: unknown): readonly unknown[] {
  return Array.isArray(output) ? output : []
}

/** What the model reads of a call that a person has refused, before the reason. */
export const rejectionPrefix = 'Rejected by the user: '

/** Why a person has refused a call, in that person's words; null for any other result. */
export function findRejectionReason({
  status,
  content,
}: Pick<ToolResult, 'status' | 'content'>): string | null {
  const isReason = status === 'rejected' && content.startsWith(rejectionPrefix)
  return isReason ? content.slice(rejectionPrefix.length) : null
}

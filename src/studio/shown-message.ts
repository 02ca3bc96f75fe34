import type { Message } from '../../machines/agent/messages.js'

// What a page shows of a transcript.

/** A picture, sound or document. */
export interface ShownMedia {
  /** What it is, in words. */
  words: string
  /** A `data:` address of a picture that the page may show; null where it shows the words. */
  picture: string | null
}

/** The formats that are nothing but points: an SVG is a document. */
const picture = /^data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+$/

/** Whether the page may show what this address holds as a picture. */
export const isPicture = (address: string): boolean => picture.test(address)

export interface Decision {
  /** The record that has it. */
  seq: number
  kind: 'approved' | 'rejected'
  /** The arguments that were given instead, as JSON, or why it was rejected; empty: neither. */
  words: string
}

/** What the model was told by the agent's author. */
export interface InstructionsView {
  text: string
  /** `agent`: as the agent has them now · `step`: those of this step alone · `fork`: those that this fork was given */
  from: 'agent' | 'step' | 'fork'
  /** The record at which a fork with other instructions starts: the first of the run. Null: not known. */
  forkAt: number | null
}

export interface ShownMessage {
  role: Message['role']
  /** The agent that a handoff made it of, on what agents say. Absent: the session's first agent. */
  speaker?: string
  id: string
  at: number
  /** The record at which a fork takes an edit of the message or of the arguments of its calls. Null: not known. */
  forkAt: number | null
  text: string
  media: ShownMedia[]
  reasoning: string
  calls: {
    id: string
    name: string
    arguments: string
    result: string | null
    /** The record at which a fork takes another result. Null: there is none yet. */
    forkAt: number | null
    media: ShownMedia[]
    status: string | null
    durationMs: number | null
    /** What a person decided about it; null: nothing. */
    decision: Decision | null
  }[]
  /** What is special about the message: `partial`, `internal`, `withheld`, `edited`, `steering`, … */
  marks: string[]
}

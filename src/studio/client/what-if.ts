import type { CompareChange, InstructionsView, ShownMessage } from '../protocol.js'

type Call = Pick<
  ShownMessage['calls'][number],
  'id' | 'name' | 'arguments' | 'result' | 'status' | 'forkAt' | 'decision'
>

/** A change of the part with this text and the id of its message or call. `at` is the record where the fork starts. */
export interface Change {
  kind: CompareChange['kind']
  id: string
  text: string
  at: number
  call?: Call
}

/** The last change that was forked, and whether `Try another` on the comparison asked to open it again. */
export const lastFork: { id: string; change: Change | null; isDue: boolean } = {
  id: '',
  change: null,
  isDue: false,
}

/** Null if the part does not exist, or if no fork can change it. */
function toChange({ text, at, ...part }: Omit<Change, 'text' | 'at'> & Nullable): Change | null {
  return text === null || at === null ? null : { ...part, text, at }
}

type Nullable = { [Key in 'text' | 'at']: Change[Key] | null }

export function toMessageChange({ role, id, text, forkAt, marks }: ShownMessage): Change | null {
  if (role !== 'user' || marks.includes('internal')) return null
  return toChange({ kind: 'message', id, text, at: forkAt })
}

export function toInstructionsChange({ text, forkAt }: InstructionsView): Change | null {
  return toChange({ kind: 'instructions', id: '', text, at: forkAt })
}

export function toCallChanges(call: Call, forkAt: number | null) {
  const { id, result, decision, arguments: input } = call
  return {
    result: toChange({ kind: 'result', id, text: result, at: call.forkAt, call }),
    decision: toChange({ kind: 'decision', id, text: input, at: decision && decision.seq - 1, call }),
    arguments: toChange({ kind: 'arguments', id, text: input, at: forkAt, call }),
  }
}

export function askWhatIf({ kind, call }: Change): string {
  const name = call?.name ?? 'the call'
  const words: Record<Change['kind'], string> = {
    message: 'the user message were different',
    instructions: 'the instructions were different',
    arguments: `${name} had different arguments`,
    result: `${name} had a different result`,
    decision: `${name} were decided differently`,
  }
  return `What if ${words[kind]}`
}

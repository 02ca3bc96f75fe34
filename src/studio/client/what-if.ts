import type { CompareChange, MomentView, ShownMessage } from '../protocol.js'

export type Call = Pick<
  ShownMessage['calls'][number],
  'id' | 'name' | 'arguments' | 'result' | 'status' | 'forkAt' | 'decision'
>

/** A change of the part with this text and the id of its message or call. `at` is the record where the fork starts. */
export interface WhatIf {
  kind: CompareChange['kind']
  id: string
  text: string
  at: number
  call?: Call
}

/** The last change that was forked, and whether `Try another` on the comparison asked to open it again. */
export const lastWhatIf: { id: string; wanted: WhatIf | null; isDue: boolean } = {
  id: '',
  wanted: null,
  isDue: false,
}

/** Null if the part does not exist, or if no fork can change it. */
export function toWhatIf({ text, at, ...part }: Omit<WhatIf, 'text' | 'at'> & Nullable): WhatIf | null {
  return text === null || at === null ? null : { ...part, text, at }
}

type Nullable = { [Key in 'text' | 'at']: WhatIf[Key] | null }

export function listCallWhatIfs(call: Call, forkAt: number | null) {
  const { id, result, decision, arguments: input } = call
  return {
    result: toWhatIf({ kind: 'result', id, text: result, at: call.forkAt, call }),
    decision: toWhatIf({ kind: 'decision', id, text: input, at: decision && decision.seq - 1, call }),
    arguments: toWhatIf({ kind: 'arguments', id, text: input, at: forkAt, call }),
  }
}

export function askWhatIf({ kind, call }: WhatIf): string {
  const name = call?.name ?? 'the call'
  const words: Record<WhatIf['kind'], string> = {
    message: 'the user message were different',
    instructions: 'the instructions were different',
    arguments: `${name} had different arguments`,
    result: `${name} had a different result`,
    decision: `${name} were decided differently`,
  }
  return `What if ${words[kind]}`
}

export function toInstructionsWhatIf(instructions: MomentView['instructions']): WhatIf | null {
  return (
    instructions &&
    toWhatIf({ kind: 'instructions', id: '', text: instructions.text, at: instructions.forkAt })
  )
}

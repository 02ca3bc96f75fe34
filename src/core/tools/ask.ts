import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall, ChildQuestion } from '../../../machines/agent/batch-calls.js'
import type { Elicitation } from '../../../machines/agent/run-result.js'
import { digest } from '../../../guards/lib/fingerprint.js'
import type { ToolExecution } from './tool.js'

/**
 * What a tool returns to ask people in the middle of its call. The run rests until all is answered, perhaps in another process;
 * then the tool is called again with the same input, and `findAsked` has the answers and the memo.
 */
export class Ask {
  readonly elicitations: readonly Elicitation[]
  /** What the tool wants to have when it is called again. It is in the log, and no page or model sees it. */
  readonly memo: Json

  constructor(elicitations: readonly Elicitation[], memo: Json) {
    this.elicitations = elicitations
    this.memo = memo
  }
}

/** What a call has asked, and what it was answered. */
export interface Asked {
  /** The answer to each elicitation, in their order, as JSON text; undefined where there is none. */
  readonly answers: readonly (string | undefined)[]
  readonly memo: Json
}

/** What a call has asked before; undefined: nothing. */
export function findAsked(execution: ToolExecution): Asked | undefined {
  return askedBefore.get(execution)
}

export function rememberAsked(execution: ToolExecution, { questions = [], memo = null }: AskingCall): void {
  const answers = questions.map(({ answer }) => (answer?.type === 'output' ? answer.content : undefined))
  if (questions.length > 0) askedBefore.set(execution, { answers, memo })
}

/** The part of a call that questions are about. */
type AskingCall = Pick<BatchCall, 'questions' | 'memo'>

const askedBefore = new WeakMap<ToolExecution, Asked>()

/** The questions of a call. An answer to one of them is for no other one, whatever the server asks next. */
export function toQuestions(
  { name, arguments: text }: Pick<BatchCall, 'name' | 'arguments'>,
  { elicitations, memo }: Ask,
): ChildQuestion[] {
  return elicitations.map((elicitation, i) => {
    const fingerprint = digest(JSON.stringify([name, text, elicitation, memo, i]))
    const callId = `ask-${fingerprint.slice(0, 8)}`
    return {
      own: true,
      callId,
      name: name as never,
      arguments: text,
      fingerprint,
      needs: 'elicitation',
      elicitation,
    }
  })
}

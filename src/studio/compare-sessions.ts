import type { LoggedEdit } from '../core/sessions/log/log-record.js'
import type { CompareChange, Decision, RecordRow, SessionView, ShownMessage } from './protocol.js'
import { listRunSteps, type RunStep } from './run-steps.js'
import type { SessionFold } from './session-fold.js'
import { createTranscript, toShownText } from './shown-values.js'
import { findEffectiveInstructions } from './session-step.js'

interface ComparedSession {
  view: SessionView
  fold: SessionFold
  instructions: string | undefined
}

export type CompareView = ReturnType<typeof createCompareView>
export type CompareStep = ReturnType<typeof listSteps>[number]

export function createCompareView(a: ComparedSession, b: ComparedSession) {
  const [messages, otherMessages] = [getTranscript(a), getTranscript(b)]
  const [steps, others] = [listSteps(a, messages), listSteps(b, otherMessages)]
  const count = Math.max(steps.length, others.length)
  /** The side that is a fork of the other. */
  const fork: 'a' | 'b' | null = isForkOf(b, a) ? 'b' : isForkOf(a, b) ? 'a' : null
  const origin = fork && { a, b }[fork].fold.origin
  return {
    a: a.view,
    b: b.view,
    fork,
    commonRecords: origin?.seq ?? countCommonRecords(a.view.rows, b.view.rows),
    change: origin?.edit
      ? findChange(origin.edit, a, b, messages, otherMessages)
      : findOtherDecision(messages, otherMessages),
    /** The answer that each session ends with. Empty for a session without an answer. */
    answers: { a: findAnswer(steps), b: findAnswer(others) },
    steps: Array.from({ length: count }, (_, i) => {
      const [one, two] = [steps[i] ?? null, others[i] ?? null]
      const isSame =
        one !== null &&
        two !== null &&
        isEqual(
          [one.userText, one.text, one.calls, one.failure],
          [two.userText, two.text, two.calls, two.failure],
        )
      return { step: i + 1, a: one, b: two, isSame }
    }),
  }
}

const getTranscript = ({ fold }: ComparedSession): ShownMessage[] =>
  createTranscript(fold.now, fold.notes).transcript

const isForkOf = ({ fold }: ComparedSession, { view }: ComparedSession): boolean =>
  fold.origin?.sessionId === view.session.id

/** The equal records at the starts of two sessions. */
function countCommonRecords(rows: readonly RecordRow[], others: readonly RecordRow[]): number {
  const toKey = ({ type, label, to, transitionIds }: RecordRow) => [type, label, to, transitionIds]
  const at = rows.findIndex((row, i) => {
    const other = others[i]
    return other === undefined || !isEqual(toKey(row), toKey(other))
  })
  return at < 0 ? rows.length : at
}

const isEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function findChange(
  edit: LoggedEdit,
  a: ComparedSession,
  b: ComparedSession,
  messages: readonly ShownMessage[],
  otherMessages: readonly ShownMessage[],
): CompareChange | null {
  if ('instructions' in edit) return findOtherInstructions(a, b)
  if ('message' in edit) {
    const textIn = (messages: readonly ShownMessage[]): string =>
      messages.find(({ id }) => id === edit.message)?.text ?? ''
    return { kind: 'message', name: null, a: textIn(messages), b: textIn(otherMessages) }
  }
  const kind = 'result' in edit ? 'result' : 'arguments'
  for (const [call, twin] of listTwins(messages, otherMessages))
    if (call.id === edit.call && call[kind] !== twin[kind])
      return { kind, name: call.name, a: call[kind] ?? '', b: twin[kind] ?? '' }
  return null
}

function findOtherDecision(
  messages: readonly ShownMessage[],
  otherMessages: readonly ShownMessage[],
): CompareChange | null {
  for (const [call, twin] of listTwins(messages, otherMessages)) {
    if (!call.decision || !twin.decision) continue
    const [a, b] = [describeDecision(call.decision), describeDecision(twin.decision)]
    if (a !== b) return { kind: 'decision', name: call.name, a, b }
  }
  return null
}

const describeDecision = ({ kind, words }: Decision): string => [kind, words].filter(Boolean).join(': ')

type Calls = ShownMessage['calls']

/** The calls of both sessions. Call ids are unique only within a batch, so the calls of the same message are paired. */
function listTwins(messages: readonly ShownMessage[], others: readonly ShownMessage[]) {
  return messages.flatMap(({ id, calls }) => {
    const twins = others.find((one) => one.id === id)?.calls ?? []
    return calls.flatMap((call): [Calls[number], Calls[number]][] => {
      const twin = twins.find((one) => one.id === call.id)
      return twin ? [[call, twin]] : []
    })
  })
}

function findOtherInstructions(a: ComparedSession, b: ComparedSession): CompareChange {
  const [one = '', two = ''] = [a, b].map(({ fold, instructions }) =>
    toShownText(findEffectiveInstructions(fold.now.session, instructions)?.text ?? ''),
  )
  return { kind: 'instructions', name: null, a: one, b: two }
}

/** Empty if the last step failed or called tools, because the run gave no answer in it. */
function findAnswer(steps: readonly CompareStep[]): string {
  const last = steps.at(-1)
  return last && last.calls.length === 0 ? last.text : ''
}

function listSteps({ view }: ComparedSession, messages: readonly ShownMessage[]) {
  const { rows } = view
  const runSteps = listRunSteps(view)
  const answers = messages.flatMap((message, i) =>
    message.role === 'assistant' ? [{ ...message, userText: getWordsBefore(messages, i) }] : [],
  )
  const brought = rows.filter(({ label, type }) => type === 'event' && label.startsWith('answer'))
  // A fork contains the original's answers but not its records.
  const inherited = answers.length - brought.length
  const answered = answers.map(({ text, calls, userText }, i) => {
    const row = brought[i - inherited]
    const place = row ? row.seq - 1 : -1
    return {
      seq: row?.seq ?? 1,
      userText,
      text,
      calls: calls.map(({ name, arguments: input, result }) => ({ name, arguments: input, result })),
      failure: null,
      /** Whether a fork copied the step from its original. A copied step has no usage and no duration. */
      isInherited: row === undefined,
      ...sumStep(runSteps.find(({ from, to }) => from <= place && place <= to)),
    }
  })
  const failed = runSteps
    .filter(({ isAnswered, flags }) => !isAnswered && flags.includes('error'))
    .map((step) => {
      const seq = rows[step.place]?.seq ?? 1
      const isLast = answered.every((answer) => answer.seq < seq)
      return {
        seq,
        userText: isLast ? getWordsBefore(messages, messages.length) : '',
        text: '',
        calls: [],
        /** The end of a step without an answer, such as `model failed: server_error`. */
        failure: step.label,
        isInherited: false,
        ...sumStep(step),
      }
    })
  return [...answered, ...failed].toSorted((a, b) => a.seq - b.seq)
}

function sumStep(step: RunStep | undefined) {
  if (step === undefined) return { tokens: 0, cost: null, ms: 0 }
  const { tokens, cost, ms, waitMs } = step
  return { tokens, cost: cost.isWhole ? cost.usd : null, ms: Math.max(0, ms - waitMs) }
}

function getWordsBefore(messages: readonly ShownMessage[], at: number): string {
  const since = messages.findLastIndex(({ role }, i) => i < at && role === 'assistant')
  return messages
    .slice(since + 1, at)
    .flatMap(({ role, text, marks }) => (role === 'user' && !marks.includes('internal') ? [text] : []))
    .join('\n')
}

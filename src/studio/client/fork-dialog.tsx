import { useEffect, useRef, useState } from 'preact/hooks'
import type { TextEdit, ForkRequest, MomentView, RecordRow } from '../protocol.js'
import { shorten } from '../../core/format/format-words.js'
import { Fact } from './json-tree.js'
import { Check, Refusal } from './loading.js'
import { formatJson, formatError } from './format.js'
import type { RunStep } from './run-steps.js'
import { type Choice, describeFork, findDefault, listChanges, type WhatIf } from './what-if.js'
import { forkableStates } from '../session-query.js'
import { parseJsonOr } from '../../core/base/json.js'

interface ForkProps {
  /** The record at which to fork without a change. */
  seq: number
  /** The change whose pencil the reader has used. Null if the dialog offers every change. */
  wanted: WhatIf | null
  moment: MomentView | null
  rows: readonly RecordRow[]
  steps: readonly RunStep[]
  otherAgent: string | null
  onFork: (request: ForkRequest, wanted: WhatIf | null) => Promise<void>
  onClose: () => void
}

export function ForkDialog(props: ForkProps) {
  const { moment, rows } = props
  // A run that has ended is run again from its last active record.
  const seq = rows.findLast((row) => row.seq <= props.seq && forkableStates.has(row.state))?.seq ?? props.seq
  const [choices] = useState(() => (props.wanted || !moment ? [] : listChanges(moment)))
  const [wanted, choose] = useState(() => props.wanted ?? findDefault(choices, seq)?.wanted ?? null)
  const [hasChosen, setChosen] = useState(false)
  // Another choice opens a new dialog, which cannot return the focus to the button.
  const [opener] = useState(() => document.activeElement)
  const onClose = (): void => {
    props.onClose()
    if (opener instanceof HTMLElement) opener.focus()
  }
  const chosen = choices.findIndex((choice) => choice.wanted === wanted)
  return (
    <ForkForm
      key={chosen}
      {...props}
      onClose={onClose}
      seq={wanted?.at ?? seq}
      wanted={wanted}
      choices={choices}
      chosen={chosen}
      hasChosen={hasChosen}
      onChoose={(next) => {
        setChosen(true)
        choose(next)
      }}
    />
  )
}

interface FormProps extends ForkProps {
  choices: readonly Choice[]
  chosen: number
  /** Whether the reader has chosen a change. The list of choices then keeps the focus. */
  hasChosen: boolean
  onChoose: (wanted: WhatIf | null) => void
}

function ForkForm(props: FormProps) {
  const { seq, wanted, choices, chosen, hasChosen, onChoose, rows, steps, otherAgent, onFork, onClose } =
    props
  const place = rows.findIndex((row) => row.seq === seq)
  const canRun = forkableStates.has(rows[place]?.state ?? '')
  const dialog = useRef<HTMLDialogElement>(null)
  const { title, label, before } = describeWanted(wanted, seq)
  const call = wanted !== null && 'call' in wanted ? wanted.call : undefined
  const decided = wanted !== null && 'decided' in wanted ? wanted : null
  const [text, setText] = useState(before)
  const [why, setWhy] = useState('')
  const [isRun, setRun] = useState(canRun)
  const [asksFirst, setAsksFirst] = useState(true)
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    dialog.current?.showModal()
    if (!hasChosen) dialog.current?.querySelector('textarea')?.focus()
  }, [])
  const run = decided !== null || isRun
  const isJson = decided !== null || (wanted !== null && 'edit' in wanted && 'arguments' in wanted.edit)
  const isSame = wanted !== null && !decided && text === before
  const isWrong = isJson && text !== before && parseJsonOr(text, undefined) === undefined
  const send = async (request: Partial<ForkRequest>): Promise<void> => {
    setBusy(true)
    setTrouble('')
    try {
      await onFork({ at: seq, run, askFirst: asksFirst, ...request }, wanted)
    } catch (error) {
      setTrouble(formatError(error))
      setBusy(false)
    }
  }
  const approve = {
    type: 'approve' as const,
    ...(text !== before && { editedInput: parseJsonOr(text, undefined) }),
  }
  const submit = (event: Event): void => {
    event.preventDefault()
    const edit = wanted && 'edit' in wanted && text !== before ? toEdit(wanted.edit, text) : undefined
    void send(decided ? { decision: { callId: decided.call.id, ...approve } } : { ...(edit && { edit }) })
  }
  return (
    <dialog ref={dialog} class="fork" aria-labelledby="fork-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="fork-title">{title}</h2>
        <p>The fork starts at record {seq}. This session does not change.</p>
        <p class="effect">{describeFork(place, steps, rows, asksFirst, otherAgent === null)}</p>
        {otherAgent !== null && <p class="other-agent">{otherAgent}</p>}
        {choices.length > 0 && (
          <label>
            What to change
            <select
              value={chosen}
              onChange={({ currentTarget: { value } }) => onChoose(choices[Number(value)]?.wanted ?? null)}
            >
              {choices.map(({ label, wanted: { at } }, index) => (
                <option key={index} value={index}>
                  Step {steps.findLast(({ from }) => (rows[from]?.seq ?? 0) <= at)?.step}: {label}
                </option>
              ))}
              <option value={-1}>Nothing, just rerun it</option>
            </select>
          </label>
        )}
        {call && <CallFacts call={call} />}
        {wanted !== null && (
          <label>
            {label}
            <textarea
              rows={6}
              value={text}
              spellcheck={!isJson}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        )}
        {decided && (
          <label>
            Reason (if rejecting)
            <input type="text" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
          </label>
        )}
        {isWrong && <p class="refusal">Not valid JSON.</p>}
        {!canRun && <p>No run is active at this record. The next message starts one.</p>}
        {canRun && !decided && (
          <Check isOn={isRun} onChange={setRun}>
            Run now and compare
          </Check>
        )}
        <Check isOn={asksFirst} onChange={setAsksFirst}>
          Ask before any call that can change something
        </Check>
        <Refusal text={trouble} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy || isWrong || isSame}>
            {decided ? 'Approve and compare' : run ? 'Run and compare' : 'Fork'}
          </button>
          {decided && (
            <button
              type="button"
              disabled={isBusy}
              onClick={() =>
                send({
                  decision: {
                    callId: decided.call.id,
                    type: 'reject',
                    ...(why.trim() !== '' && { why: why.trim() }),
                  },
                })
              }
            >
              Reject and compare
            </button>
          )}
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          {isSame && <span>To run it, edit the text.</span>}
        </div>
      </form>
    </dialog>
  )
}

function CallFacts({ call: { name, arguments: input, result } }: { call: NonNullable<WhatIf['call']> }) {
  return (
    <dl class="facts call-facts">
      <Fact name="Call">
        <code>
          {name} {formatJson(input)}
        </code>
      </Fact>
      {result !== null && (
        <Fact name="Result">
          <code>{shorten(result, 400)}</code>
        </Fact>
      )}
    </dl>
  )
}

function describeWanted(wanted: WhatIf | null, seq: number): Record<'title' | 'label' | 'before', string> {
  if (wanted === null)
    return { title: `What if the run continued from record ${seq} again?`, label: '', before: '' }
  if ('decided' in wanted)
    return {
      title: `What if ${wanted.call.name} were decided differently?`,
      label: 'Arguments to approve',
      before: formatJson(wanted.call.arguments),
    }
  const { edit } = wanted
  if ('instructions' in edit)
    return {
      title: 'What if the instructions were different?',
      label: 'Instructions in this fork only',
      before: edit.instructions,
    }
  if ('message' in edit)
    return {
      title: 'What if the user message were different?',
      label: 'Message in the fork',
      before: edit.content,
    }
  if ('arguments' in edit)
    return {
      title: `What if ${wanted.call?.name ?? 'the call'} had different arguments?`,
      label: 'The fork makes the call with these arguments instead',
      before: formatValue(edit.arguments),
    }
  return {
    title: `What if ${wanted.call?.name ?? 'the call'} had a different result?`,
    label:
      'In the fork, the model reads this result instead, as if the tool had returned it. The tool does not run.',
    before: formatValue(edit.result),
  }
}

function toEdit(edit: TextEdit, text: string): TextEdit {
  if ('instructions' in edit) return { instructions: text }
  if ('message' in edit) return { message: edit.message, content: text }
  // A result can be any text. Valid JSON is parsed.
  const value = parseJsonOr(text, undefined)
  return 'result' in edit ? { call: edit.call, result: value ?? text } : { call: edit.call, arguments: value }
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? formatJson(value) : JSON.stringify(value, null, 2)
}

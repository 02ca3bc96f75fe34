import { useEffect, useRef, useState } from 'preact/hooks'
import type { ForkRequest, MomentView, RecordRow } from '../protocol.js'
import { shorten } from '../../core/format/format-words.js'
import { Facts } from './json-tree.js'
import { Check, Refusal, useAttempt } from './loading.js'
import { formatJson } from '../format.js'
import type { RunStep } from '../run-steps.js'
import { askWhatIf, type Change } from './what-if.js'
import { describeFork, findDefault, describeChange, listChanges, toEdit } from './fork-choices.js'
import { forkableStates } from '../session-query.js'
import { parseJsonOr } from '../../core/base/json.js'

interface ForkProps {
  rows: readonly RecordRow[]
  steps: readonly RunStep[]
  /** The record at which to fork without a change. */
  seq: number
  /** The change whose pencil the reader has used. Null if the dialog offers every change. */
  change: Change | null
  moment: MomentView | null
  otherAgent: string | null
  onFork: (request: ForkRequest, change: Change | null) => Promise<void>
  onClose: () => void
}

export function ForkDialog(props: ForkProps) {
  const { moment, rows, steps, otherAgent, onFork, onClose } = props
  // A run that has ended is run again from its last active record.
  const plain =
    rows.findLast((row) => row.seq <= props.seq && forkableStates.has(row.state))?.seq ?? props.seq
  const [changes] = useState(() => (props.change || !moment ? [] : listChanges(moment)))
  const [draft, setDraft] = useState(() => createDraft(props.change ?? findDefault(changes, plain) ?? null))
  const { change, before, text, why, isRun, asksFirst } = draft
  const update = (part: Partial<typeof draft>): void => setDraft((draft) => ({ ...draft, ...part }))
  const seq = change?.at ?? plain
  const place = rows.findIndex((row) => row.seq === seq)
  const canRun = forkableStates.has(rows[place]?.state ?? '')
  const dialog = useRef<HTMLDialogElement>(null)
  const call = change?.call
  const isDecision = change?.kind === 'decision'
  const isJson = isDecision || change?.kind === 'arguments'
  const { trouble, isBusy, attempt, forgive } = useAttempt()
  useEffect(() => {
    dialog.current?.showModal()
    dialog.current?.querySelector('textarea')?.focus()
  }, [])
  const run = isDecision || (canRun && isRun)
  const isEdited = text !== before
  const isSame = change !== null && !isDecision && !isEdited
  const edited = parseJsonOr(text, undefined)
  const isWrong = isJson && isEdited && edited === undefined
  const submit = (event: Event, type: 'approve' | 'reject' = 'approve'): void => {
    event.preventDefault()
    const request: ForkRequest = { at: seq, run, askFirst: asksFirst }
    if (isDecision) {
      const reason = why.trim() !== '' && { why: why.trim() }
      const part =
        type === 'reject' ? { type, ...reason } : { type, ...(isEdited && { editedInput: edited }) }
      request.decision = { callId: call?.id ?? '', ...part }
    } else if (change && isEdited) request.edit = toEdit(change, text, edited)
    void attempt(() => onFork(request, change))
  }
  return (
    <dialog ref={dialog} class="fork" aria-labelledby="fork-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="fork-title">
          {change ? askWhatIf(change) : `What if the run continued from record ${seq} again`}?
        </h2>
        <p>The fork starts at record {seq}. This session does not change.</p>
        <p class="effect">{describeFork(place, steps, rows, asksFirst, otherAgent === null)}</p>
        {otherAgent !== null && <p class="other-agent">{otherAgent}</p>}
        {changes.length > 0 && (
          <label>
            What to change
            <select
              value={changes.findIndex((one) => one === change)}
              onChange={({ currentTarget: { value } }) => {
                setDraft(createDraft(changes[Number(value)] ?? null))
                forgive()
              }}
            >
              {changes.map((one, index) => (
                <option key={index} value={index}>
                  Step {steps.findLast(({ from }) => (rows[from]?.seq ?? 0) <= one.at)?.step}:{' '}
                  {describeChange(one)}
                </option>
              ))}
              <option value={-1}>Nothing, just rerun it</option>
            </select>
          </label>
        )}
        {call && (
          <Facts
            of={{
              Call: <code>{`${call.name} ${formatJson(call.arguments)}`}</code>,
              Result: call.result !== null && <code>{shorten(call.result, 400)}</code>,
            }}
          />
        )}
        {change !== null && (
          <label>
            {labels[change.kind]}
            <textarea
              rows={6}
              value={text}
              spellcheck={!isJson}
              onInput={(event) => update({ text: event.currentTarget.value })}
            />
          </label>
        )}
        {isDecision && (
          <label>
            Reason (if rejecting)
            <input type="text" value={why} onInput={(event) => update({ why: event.currentTarget.value })} />
          </label>
        )}
        {isWrong && <p class="refusal">Not valid JSON.</p>}
        {!canRun && <p>No run is active at this record. The next message starts one.</p>}
        {canRun && !isDecision && (
          <Check isOn={isRun} onChange={(isRun) => update({ isRun })}>
            Run now and compare
          </Check>
        )}
        <Check isOn={asksFirst} onChange={(asksFirst) => update({ asksFirst })}>
          Ask before any call that can change something
        </Check>
        <Refusal text={trouble} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy || isWrong || isSame}>
            {isDecision ? 'Approve and compare' : run ? 'Run and compare' : 'Fork'}
          </button>
          {isDecision && (
            <button type="button" disabled={isBusy} onClick={(event) => submit(event, 'reject')}>
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

function createDraft(change: Change | null) {
  const isText = change?.kind === 'message' || change?.kind === 'instructions'
  const before = change ? (isText ? change.text : formatJson(change.text)) : ''
  return { change, before, text: before, why: '', isRun: true, asksFirst: true }
}

const labels: Record<Change['kind'], string> = {
  decision: 'Arguments to approve',
  instructions: 'Instructions in this fork only',
  message: 'Message in the fork',
  arguments: 'The fork makes the call with these arguments instead',
  result:
    'In the fork, the model reads this result instead, as if the tool had returned it. The tool does not run.',
}

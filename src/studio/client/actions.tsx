import { useEffect, useRef, useState } from 'preact/hooks'
import type { Answer, ForkEdit, ForkRequest, MomentView, PendingView } from '../protocol.js'
import { formatJson } from './format.js'
import { parseJsonOr } from '../../core/base/parse-json.js'

interface ActionsProps {
  moment: MomentView
  /** Why nothing can be done here; null where something can. */
  readOnly: string | null
  onAnswer: (answer: Answer) => Promise<void>
}

/** The actions of a user: pending calls, messages, and control of the run. */
export function Actions({ moment, readOnly, onAnswer }: ActionsProps) {
  const { pending, actions } = moment
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const send = async (answer: Answer): Promise<void> => {
    setBusy(true)
    setTrouble('')
    try {
      await onAnswer(answer)
    } catch (error) {
      setTrouble(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  const may = new Set(actions)
  const buttons = (['pause', 'resume', 'cancel'] as const).filter((type) => may.has(type))
  const says = (['reply', 'steer'] as const).find((type) => may.has(type))
  if (pending.length === 0 && actions.length === 0) return null
  return (
    <section class="actions" aria-label="What you can do" aria-busy={isBusy}>
      {trouble !== '' && (
        <p class="refusal" role="alert" ref={(line) => line?.scrollIntoView({ block: 'nearest' })}>
          {trouble}
        </p>
      )}
      {pending.map((call) => (
        <PendingCard
          key={`${call.callId} ${call.fingerprint}`}
          call={call}
          may={may}
          isBusy={isBusy}
          send={send}
        />
      ))}
      {pending.length > 0 && readOnly !== null && <p class="read-only">{readOnly}</p>}
      {says && <SayForm key={says} type={says} isBusy={isBusy} send={send} />}
      {buttons.length > 0 && (
        <div class="buttons">
          {buttons.map((type) => (
            <button
              key={type}
              type="button"
              disabled={isBusy}
              class={type === 'cancel' ? 'danger' : ''}
              onClick={() => send({ type })}
            >
              {type === 'pause' ? 'Pause' : type === 'resume' ? 'Resume' : 'Cancel the run'}
            </button>
          ))}
        </div>
      )}
    </section>
  )
}

interface PendingProps {
  call: PendingView
  may: ReadonlySet<Answer['type']>
  isBusy: boolean
  send: (answer: Answer) => Promise<void>
}

function PendingCard({ call, may, isBusy, send }: PendingProps) {
  const { callId, fingerprint, name, needs } = call
  const written = formatJson(call.arguments)
  const [text, setText] = useState(needs === 'approval' ? written : '')
  const [why, setWhy] = useState('')
  const parsed = parseJsonOr(text, undefined)
  const isEdited = needs === 'approval' && text !== written
  // The shown text may be cut or redacted: unchanged, it approves the original arguments.
  const isWrong = (isEdited || needs === 'client') && parsed === undefined
  return (
    <article class="pending" aria-label={`${name} waits for you`}>
      <header>
        <strong>{name}</strong>
        <span>{needs === 'approval' ? 'needs your approval' : 'is yours to carry out'}</span>
      </header>
      {needs === 'client' && <pre tabIndex={0}>{written}</pre>}
      <label>
        {needs === 'approval' ? 'Arguments' : 'Result, as JSON'}
        <textarea
          spellcheck={false}
          rows={Math.min(12, Math.max(3, text.split('\n').length))}
          value={text}
          disabled={!may.has(needs === 'approval' ? 'approve' : 'tool_output')}
          aria-invalid={isWrong && text !== ''}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {isWrong && text !== '' && <p class="refusal">This is no JSON.</p>}
      {may.has('reject') && needs === 'approval' && (
        <label>
          Why not, if you reject it
          <input type="text" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        </label>
      )}
      <div class="buttons">
        {needs === 'approval' && may.has('approve') && (
          <button
            type="button"
            class="primary"
            disabled={isBusy || isWrong}
            onClick={() =>
              send({ type: 'approve', callId, fingerprint, ...(isEdited && { arguments: parsed }) })
            }
          >
            {isEdited ? 'Approve as edited' : 'Approve'}
          </button>
        )}
        {needs === 'approval' && may.has('reject') && (
          <button
            type="button"
            disabled={isBusy}
            onClick={() =>
              send({ type: 'reject', callId, fingerprint, ...(why.trim() !== '' && { why: why.trim() }) })
            }
          >
            Reject
          </button>
        )}
        {needs === 'client' && may.has('tool_output') && (
          <button
            type="button"
            class="primary"
            disabled={isBusy || isWrong}
            onClick={() => send({ type: 'tool_output', callId, fingerprint, value: parsed })}
          >
            Hand in
          </button>
        )}
      </div>
    </article>
  )
}

function SayForm({
  type,
  isBusy,
  send,
}: {
  type: 'reply' | 'steer'
  isBusy: boolean
  send: PendingProps['send']
}) {
  const [text, setText] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    if (text.trim() === '') return
    void send({ type, text: text.trim() }).then(() => setText(''))
  }
  return (
    <form class="say" onSubmit={submit}>
      <label class="sr" for="say">
        {type === 'reply' ? 'Reply' : 'Steer the run'}
      </label>
      <input
        id="say"
        type="text"
        value={text}
        placeholder={type === 'reply' ? 'Reply …' : 'Tell it something while it works …'}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" disabled={isBusy || text.trim() === ''}>
        {type === 'reply' ? 'Reply' : 'Steer'}
      </button>
    </form>
  )
}

interface ForkProps {
  seq: number
  edit: ForkEdit | null
  /** Whether a run is under way there. */
  canRun: boolean
  onFork: (request: ForkRequest) => Promise<void>
  onClose: () => void
}

/** Asks for the change in a fork, and whether to run it at once. */
export function ForkDialog({ seq, edit, canRun, onFork, onClose }: ForkProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const kind =
    edit === null ? null : 'message' in edit ? 'message' : 'arguments' in edit ? 'arguments' : 'result'
  const before =
    edit === null
      ? ''
      : 'message' in edit
        ? edit.text
        : formatValue('arguments' in edit ? edit.arguments : edit.result)
  const [text, setText] = useState(before)
  const [run, setRun] = useState(canRun)
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  useEffect(() => dialog.current?.showModal(), [])
  const changed = (): ForkEdit | undefined => {
    if (edit === null || text === before) return undefined
    if ('message' in edit) return { message: edit.message, text }
    // A result may be any text; JSON is parsed.
    const value = parseJsonOr(text, undefined)
    if ('result' in edit) return { call: edit.call, result: value === undefined ? text : value }
    return { call: edit.call, arguments: value }
  }
  const isWrong = kind === 'arguments' && text !== before && parseJsonOr(text, undefined) === undefined
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setTrouble('')
    const other = changed()
    try {
      await onFork({ at: seq, run, ...(other && { edit: other }) })
    } catch (error) {
      setTrouble(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} class="fork" aria-labelledby="fork-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="fork-title">Fork from record {seq}</h2>
        <p>A new session begins there. This one is left as it is.</p>
        {kind !== null && (
          <label>
            {kind === 'message'
              ? 'The user says instead'
              : kind === 'arguments'
                ? 'Arguments instead'
                : 'Result instead'}
            <textarea
              rows={6}
              value={text}
              spellcheck={kind === 'message'}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        )}
        {isWrong && <p class="refusal">This is no JSON.</p>}
        {canRun ? (
          <label class="check">
            <input type="checkbox" checked={run} onChange={(event) => setRun(event.currentTarget.checked)} />
            Run it at once
          </label>
        ) : (
          <p>No run is under way at this record: the next one goes on from there.</p>
        )}
        {trouble !== '' && (
          <p class="refusal" role="alert">
            {trouble}
          </p>
        )}
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy || isWrong}>
            Fork
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Leave it
          </button>
        </div>
      </form>
    </dialog>
  )
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? formatJson(value) : JSON.stringify(value, null, 2)
}

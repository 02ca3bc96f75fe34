import { useEffect, useRef, useState } from 'preact/hooks'
import type { ForkEdit, ForkRequest } from '../protocol.js'
import { formatJson } from './format.js'
import { parseJsonOr } from '../../core/base/parse-json.js'

interface ForkProps {
  seq: number
  edit: ForkEdit | null
  /** Whether a run is under way there. */
  canRun: boolean
  /** What the fork drops and what may happen again. */
  effect: string
  onFork: (request: ForkRequest) => Promise<void>
  onClose: () => void
}

/** Asks for the change in a fork, and whether to run it at once. */
export function ForkDialog({ seq, edit, canRun, effect, onFork, onClose }: ForkProps) {
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
        <h2 id="fork-title">{kind === null ? `Fork from record ${seq}` : titles[kind]}</h2>
        <p>A new session begins at record {seq}. This one is left as it is.</p>
        <p class="effect">{effect}</p>
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
            Run it at once, and compare the two
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
            {run ? 'Run and compare' : 'Fork'}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Leave it
          </button>
        </div>
      </form>
    </dialog>
  )
}

const titles = {
  message: 'What if the user had said something else?',
  arguments: 'What if the call had other arguments?',
  result: 'What if the call had another result?',
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? formatJson(value) : JSON.stringify(value, null, 2)
}

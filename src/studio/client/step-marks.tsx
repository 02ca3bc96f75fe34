import { useState } from 'preact/hooks'
import type { SessionRow } from '../protocol.js'
import type { RunStep } from '../run-steps.js'
import { capitalize } from '../format.js'
import { Icon } from './icons.js'
import { Refusal, useAttempt } from './loading.js'
import type { RunPage } from './run-page.js'
import { findMark } from './steps-pane.js'

type Mark = SessionRow['marks'][number]

/** A constant, because a new function would take the focus back on every render. */
const focusField = (field: HTMLInputElement | null): void => field?.focus()

/** Buttons that mark a step. A pressed button removes the mark. */
export function StepMarks({ run, step }: { run: RunPage; step: RunStep }) {
  const { rows, session } = run.view
  const seq = rows[step.place]?.seq ?? run.row.seq
  const mark = findMark(step, rows, session.marks)
  const [draft, setDraft] = useState<{ seq: number; text: string } | null>(null)
  const { trouble, attempt } = useAttempt()
  const at = mark?.seq ?? seq
  const note = draft?.seq === seq ? draft.text : null
  const setNote = (text: string | null): void => setDraft(text === null ? null : { seq, text })
  const send = (kind: Mark['mark'] | null, text: string): Promise<void> =>
    attempt(() => run.mark({ seq: at, mark: kind, note: text }).then(() => setNote(null)))
  const save = (event: Event): void => {
    event.preventDefault()
    const text = (note ?? '').trim()
    const kind = mark?.mark ?? 'note'
    void send(text === '' && kind === 'note' ? null : kind, text)
  }
  return (
    <span class="mark-buttons" role="group" aria-label={`Mark step ${step.step}`}>
      {(['good', 'bad', 'note'] as const).map((kind) => (
        <button
          key={kind}
          class={`icon mark-${kind}`}
          aria-label={capitalize(kind)}
          title={(kind === 'note' && mark?.note) || capitalize(kind)}
          aria-pressed={kind === 'note' ? (mark?.note ?? '') !== '' : mark?.mark === kind}
          onClick={() => {
            if (kind === 'note') setNote(note === null ? (mark?.note ?? '') : null)
            else void send(mark?.mark === kind ? (mark.note === '' ? null : 'note') : kind, mark?.note ?? '')
          }}
        >
          <Icon name={kind} size={16} />
        </button>
      ))}
      {note !== null && (
        <form class="save-view" onSubmit={save}>
          <input
            type="text"
            aria-label={`Note on step ${step.step}`}
            placeholder="Note"
            maxLength={2_000}
            value={note}
            ref={focusField}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
          <button type="submit">Save</button>
        </form>
      )}
      <Refusal text={trouble} />
    </span>
  )
}

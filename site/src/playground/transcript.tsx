import { useState } from 'preact/hooks'
import { Markdown } from '../../../src/studio/client/markdown.js'
import type { MomentView, RecordRow } from '../../../src/studio/protocol.js'
import type { ForkEdit } from './play.ts'

interface TranscriptProps {
  view: MomentView | null
  /** Starts another session with one change. Absent when forking is not possible. */
  onEdit?: ((edit: ForkEdit) => void) | undefined
}

/** The conversation at one record, with its editable parts. */
export function Transcript({ view, onEdit }: TranscriptProps) {
  if (view === null || view.transcript.length === 0) return <p class="empty">No messages yet.</p>
  return (
    <ol class="transcript">
      {view.transcript.map(({ id, role, text, reasoning, calls, marks }) => (
        <li key={id} class={role}>
          <span class="role">
            {role}
            {marks.map((mark) => (
              <span key={mark} class="mark">
                {mark.replaceAll('_', ' ')}
              </span>
            ))}
          </span>
          {reasoning !== '' && <p class="reasoning">{reasoning}</p>}
          {text !== '' && (role === 'assistant' ? <Markdown text={text} /> : <p class="said">{text}</p>)}
          {role === 'user' && onEdit && (
            <WhatIf name="your message" text={text} onRun={(content) => onEdit({ message: id, content })} />
          )}
          {calls.map((call) => (
            <div key={call.id} class={`call ${call.status ?? ''}`}>
              <code>
                {call.name} {call.arguments}
              </code>
              <span class="status">{call.status ?? 'requested'}</span>
              {call.result !== null && <pre>{call.result}</pre>}
              {call.result !== null && onEdit && (
                <WhatIf
                  name={`the result of ${call.name}`}
                  text={call.result}
                  onRun={(result) => onEdit({ call: call.id, result })}
                />
              )}
            </div>
          ))}
        </li>
      ))}
    </ol>
  )
}

function WhatIf({ name, text, onRun }: { name: string; text: string; onRun: (text: string) => void }) {
  const [edited, setEdited] = useState<string | null>(null)
  if (edited === null) {
    return (
      <button
        type="button"
        class="quiet"
        aria-label={`What if… ${name} were different`}
        onClick={() => setEdited(text)}
      >
        What if…
      </button>
    )
  }
  return (
    <div class="what-if">
      <textarea
        aria-label={`What if ${name} were`}
        rows={3}
        value={edited}
        onInput={(event) => setEdited(event.currentTarget.value)}
      />
      <button
        type="button"
        onClick={() => {
          setEdited(null)
          onRun(edited)
        }}
      >
        Run from here
      </button>
      <button type="button" class="quiet" onClick={() => setEdited(null)}>
        Cancel
      </button>
    </div>
  )
}

/** The records of the log. Each record is one machine event. */
export function Records({
  rows,
  place,
  onPlace,
}: {
  rows: readonly RecordRow[]
  place: number
  onPlace: (seq: number) => void
}) {
  return (
    <ol class="records">
      {rows.map(({ seq, label, to, flags }) => (
        <li key={seq}>
          <button
            type="button"
            aria-current={seq === place ? 'step' : undefined}
            onClick={() => onPlace(seq)}
          >
            <span class="seq">{seq}</span>
            <span class="label">{label}</span>
            <span class="to">{to.join(', ').replaceAll('.', ' › ')}</span>
            {flags.map((flag) => (
              <span key={flag} class="mark">
                {flag}
              </span>
            ))}
          </button>
        </li>
      ))}
    </ol>
  )
}

/** The counters of the guards, and the limits. */
export function Guards({ view }: { view: MomentView | null }) {
  const guards =
    view?.guards.filter(({ isOn, streak, threshold }) => isOn && streak !== null && threshold !== null) ?? []
  const gauges = view?.budget.filter(({ limit }) => limit !== null) ?? []
  if (guards.length + gauges.length === 0) return <p class="empty">No guard counts yet.</p>
  return (
    <table class="guards">
      <thead>
        <tr>
          <th>Guard or limit</th>
          <th>Count</th>
          <th>Next</th>
        </tr>
      </thead>
      <tbody>
        {gauges.map(({ name, used, limit }) => (
          <tr key={name}>
            <td>{name}</td>
            <td>
              {Math.round(used ?? 0)} / {limit}
            </td>
            <td />
          </tr>
        ))}
        {guards.map(({ name, streak, threshold, next, evidence }) => (
          <tr key={name} class={(streak ?? 0) > 0 ? 'counts' : ''}>
            <td>{name}</td>
            <td>
              {streak} / {threshold}
            </td>
            <td title={evidence}>{next}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

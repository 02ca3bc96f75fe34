import { formatDuration } from '../../core/format/format-words.js'
import { useEffect, useState } from 'preact/hooks'
import type { Bar, MomentView, RecordRow } from '../protocol.js'
import { formatJson } from './format.js'

const shownChars = 400

interface CardProps {
  bar: Bar
  /** Pixels from the left of the timeline. */
  x: number
  rows: readonly RecordRow[]
  loadMoment: (seq: number) => Promise<MomentView | null>
}

/** What a bar of the timeline is about: a call with its arguments and result, or what the model said. */
export function HoverCard({ bar, x, rows, loadMoment }: CardProps) {
  const [told, setTold] = useState<{ bar: Bar; parts: Part[] } | null>(null)
  useEffect(() => {
    let isOver = false
    const seq = bar.toSeq ?? rows.at(-1)?.seq ?? 0
    // Without a moment the card says what the bar itself says.
    loadMoment(seq).then(
      (moment) => isOver || setTold({ bar, parts: moment ? describeBar(bar, moment, rows[seq - 1]) : [] }),
      () => undefined,
    )
    return () => {
      isOver = true
    }
  }, [bar])
  const parts = told?.bar === bar ? told.parts : []
  return (
    <div class="hover-card" aria-hidden="true" style={{ left: `min(${Math.round(x)}px, 100% - 380px)` }}>
      <p>
        <strong>{bar.label}</strong> {bar.status}
        {bar.to !== null && ` · ${formatDuration(bar.to - bar.from)}`}
      </p>
      {parts.map(({ name, text }) => (
        <p key={name}>
          <small>{name}</small>
          <code>{text.length > shownChars ? `${text.slice(0, shownChars)}…` : text}</code>
        </p>
      ))}
    </div>
  )
}

interface Part {
  name: string
  text: string
}

function describeBar(bar: Bar, { transcript }: MomentView, row: RecordRow | undefined): Part[] {
  if (bar.lane === 'model') {
    const said = bar.status === 'ok' ? transcript.findLast(({ role }) => role === 'assistant') : undefined
    if (!said) return []
    const calls = said.calls.map(({ name }) => name).join(', ')
    return [
      ...(said.text === '' ? [] : [{ name: 'Said', text: said.text }]),
      ...(calls === '' ? [] : [{ name: 'Calls', text: calls }]),
    ]
  }
  if (bar.lane !== 'tools' && bar.lane !== 'children') return []
  const settled = row?.calls.find(({ name }) => name === bar.label)
  const calls = transcript.findLast((message) => message.calls.length > 0)?.calls ?? []
  const call = calls.find(({ id, name }) => (settled ? id === settled.id : name === bar.label))
  if (!call) return []
  return [
    { name: 'Arguments', text: formatJson(call.arguments) },
    ...(call.result === null ? [] : [{ name: 'Result', text: formatJson(call.result) }]),
  ]
}

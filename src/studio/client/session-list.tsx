import { formatAgo, formatCount, formatMoney } from '../../core/format/format-words.js'
import { formatWakeTime } from '../../core/base/clock.js'
import { useEffect, useState } from 'preact/hooks'
import type { SessionRow } from '../protocol.js'
import type { Source } from './data-source.js'
import { formatShort } from './format.js'
import { StatePill } from './run-head.js'
import { formatTerm } from '../session-query.js'

interface ListProps {
  rows: readonly SessionRow[]
  source: Source
  chosen: readonly string[]
  onToggle: (id: string) => void
}

export function SessionList({ rows, ...rest }: ListProps) {
  return (
    <ul class="session-list">
      {rows.map((row) => (
        <Item key={row.id} row={row} {...rest} />
      ))}
    </ul>
  )
}

function Item({ row, source, chosen, onToggle }: Omit<ListProps, 'rows'> & { row: SessionRow }) {
  const [isOpen, setOpen] = useState(false)
  const [below, setBelow] = useState<readonly SessionRow[]>([])
  useEffect(() => {
    if (!isOpen) return undefined
    let isOver = false
    source.sessions({ q: formatTerm('parent', row.id), sort: 'created', limit: 500 }).then(
      ({ sessions }) => isOver || setBelow(sessions.toReversed()),
      () => undefined,
    )
    return () => {
      isOver = true
    }
  }, [isOpen, row.id, row.children, row.records])
  return (
    <li>
      <Row row={row} isChosen={chosen.includes(row.id)} onToggle={onToggle} />
      {row.children > 0 && (
        <button
          type="button"
          class="folds sub-agents"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {formatCount(row.children, 'sub-agent')}
          <span class="sr"> of {row.title || row.id}</span>
        </button>
      )}
      {isOpen && below.length > 0 && (
        <SessionList rows={below} source={source} chosen={chosen} onToggle={onToggle} />
      )}
    </li>
  )
}

interface RowProps {
  row: SessionRow
  isChosen: boolean
  onToggle: (id: string) => void
}

function Row({ row, isChosen, onToggle }: RowProps) {
  const { id, name, title, state, reason, wakeAt, steps, tokens, cost, updatedAt } = row
  return (
    <div class="session">
      <input
        type="checkbox"
        checked={isChosen}
        aria-label={`Choose ${title || id} to compare`}
        onChange={() => onToggle(id)}
      />
      <a href={`#/session/${encodeURIComponent(id)}`} class="session-link">
        <span class="session-title">{title || name || id}</span>
        <span class="session-sub">{describeOrigin(row)}</span>
      </a>
      <span class="session-state">
        {row.standing === 'damaged' ? (
          <span class="pill tone-bad">damaged</span>
        ) : (
          <StatePill state={state} isAsleep={wakeAt !== null} />
        )}
        {reason !== null && reason !== 'sleeping' && reason !== state?.toLowerCase() && (
          <small>{reason.replaceAll('_', ' ')}</small>
        )}
        {wakeAt !== null && <small>until {formatWakeTime(wakeAt)}</small>}
      </span>
      <span class="session-number">
        {steps === null ? '—' : formatCount(steps)}
        <small>{steps === 1 ? 'step' : 'steps'}</small>
      </span>
      <span class="session-number">
        {formatShort(tokens)}
        <small>tokens</small>
      </span>
      <span class="session-number">
        {formatMoney(cost)}
        <small>cost</small>
      </span>
      <time class="session-time" dateTime={new Date(updatedAt).toISOString()}>
        {formatAgo(updatedAt, Date.now())}
      </time>
    </div>
  )
}

function describeOrigin({
  id,
  name,
  forkedFrom,
  parent,
  isAttached,
  holder,
  problem,
  tags,
}: SessionRow): string {
  return [
    name ?? id,
    ...(forkedFrom ? [`fork of ${forkedFrom.sessionId}`] : []),
    ...(parent === null ? [] : [`sub-agent of ${parent}`]),
    ...(isAttached ? ['live'] : holder === null ? [] : [holder]),
    ...Object.entries(tags).map(([tag, value]) => `${tag}=${value}`),
    ...(problem === null ? [] : [problem]),
  ].join(' · ')
}

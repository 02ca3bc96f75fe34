import { formatDuration, formatMoney, formatCount } from '../../core/format/format-words.js'
import type { ComponentChildren } from 'preact'
import type { Bar, GaugeView, GuardView, MomentView, RecordRow } from '../protocol.js'
import { JsonTree } from './json-tree.js'
import { formatClock, formatStatePath } from './format.js'

export function RecordTab({
  moment,
  row,
  bars,
}: {
  moment: MomentView
  row: RecordRow
  bars: readonly Bar[]
}) {
  const children = bars.filter(
    ({ sessionId, fromSeq, toSeq }) =>
      sessionId !== undefined && fromSeq <= row.seq && row.seq <= (toSeq ?? Infinity),
  )
  return (
    <div class="stack">
      <dl class="facts">
        <Fact name="Record">
          {row.seq} · {row.type} · {formatClock(row.at)}
        </Fact>
        <Fact name="From">{formatStatePath(row.from) || 'nothing'}</Fact>
        <Fact name="To">{formatStatePath(row.to) || 'nothing'}</Fact>
        {row.started.length > 0 && <Fact name="Started">{row.started.join(', ')}</Fact>}
      </dl>
      {children.length > 0 && (
        <section>
          <h2>Sub-agents</h2>
          <ul class="plain">
            {children.map(({ id, label, sessionId = '' }) => (
              <li key={id}>
                <a href={`#/session/${encodeURIComponent(sessionId)}`}>{label}</a>
              </li>
            ))}
          </ul>
        </section>
      )}
      {row.taken.length > 0 && (
        <section>
          <h2>Transitions taken</h2>
          <ol class="taken-list">
            {row.taken.map((id, index) => (
              <li key={index}>{id}</li>
            ))}
          </ol>
        </section>
      )}
      <section>
        <h2>Raw record</h2>
        <JsonTree value={moment.record} />
      </section>
    </div>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

export function StateTab({ moment }: { moment: MomentView }) {
  const { changed } = moment
  return (
    <div class="stack">
      <p class="lead">
        {changed.length === 0
          ? 'This record did not change the context.'
          : 'Changes of this record are highlighted.'}
      </p>
      <JsonTree value={moment.context} changed={changed} />
    </div>
  )
}

export function GuardsTab({ guards }: { guards: readonly GuardView[] }) {
  if (guards.length === 0) return <p class="empty">This machine has no guards.</p>
  const sorted = guards.toSorted(
    (a, b) => Number(b.isOn) - Number(a.isOn) || measureNearness(b) - measureNearness(a),
  )
  return (
    <ul class="guards">
      {sorted.map((guard) => {
        const { name, streak, threshold, evidence, next, isOn } = guard
        const counts = streak !== null && threshold !== null && threshold > 0
        return (
          <li key={name} class={isOn ? (measureNearness(guard) >= 1 ? 'speaks' : '') : 'is-off'}>
            <div class="guard-head">
              <strong>{name}</strong>
              <span>{isOn ? (counts ? `${streak} of ${threshold}` : 'on') : 'off'}</span>
            </div>
            {counts && isOn && (
              <Meter part={streak / threshold} label={`${name}: ${streak} of ${threshold}`} />
            )}
            {evidence !== '' && <p class="evidence">{evidence}</p>}
            {isOn && next !== '' && <p class="next">Next: {next}</p>}
          </li>
        )
      })}
    </ul>
  )
}

function measureNearness({ streak, threshold }: GuardView): number {
  return streak === null || threshold === null || threshold === 0 ? 0 : streak / threshold
}

/** `elapsedMs` is the elapsed time of a run without a deadline, whose budget does not count time. */
export function BudgetTab({ budget, elapsedMs }: { budget: readonly GaugeView[]; elapsedMs: number }) {
  const say = (name: GaugeView['name'], value: number | null): string =>
    value === null
      ? 'unknown'
      : name === 'cost'
        ? formatMoney(value)
        : name === 'time'
          ? formatDuration(value)
          : formatCount(value)
  return (
    <ul class="gauges">
      {budget.map(({ name, used: counted, limit, children }) => {
        const used = name === 'time' ? (counted ?? elapsedMs) : counted
        return (
          <li key={name}>
            <div class="guard-head">
              <strong>{name}</strong>
              <span>
                {say(name, used)}
                {limit === null ? ', no limit' : ` of ${say(name, limit)}`}
              </span>
            </div>
            {limit !== null && limit > 0 && used !== null && (
              <Meter
                part={used / limit}
                inner={children / limit}
                label={`${name}: ${say(name, used)} of ${say(name, limit)}`}
              />
            )}
            {children > 0 && <p class="next">Sub-agents: {say(name, children)}</p>}
          </li>
        )
      })}
    </ul>
  )
}

function Meter({ part, inner = 0, label }: { part: number; inner?: number; label: string }) {
  const percent = (value: number): string => `${Math.min(100, Math.max(0, value * 100))}%`
  return (
    <div
      class={`meter${part >= 1 ? ' full' : part >= 0.75 ? ' near' : ''}`}
      role="meter"
      aria-label={label}
      aria-valuenow={Math.round(Math.min(1, part) * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <div class="meter-fill" style={{ width: percent(part) }} />
      {inner > 0 && <div class="meter-inner" style={{ width: percent(inner) }} />}
    </div>
  )
}

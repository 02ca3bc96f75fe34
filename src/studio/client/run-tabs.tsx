import type { ComponentChildren } from 'preact'
import type { AgentContext } from '../../../machines/agent/context.js'
import { formatWakeTime } from '../../core/base/clock.js'
import { formatDuration, formatMoney, formatCount } from '../../core/format/format-words.js'
import { addCosts, type CostSum, formatCost, sumCosts } from '../costs.js'
import { type RunStep, toStepKey } from './run-steps.js'
import type { Bar, GaugeView, GuardView, MomentView, RecordRow, RequestView } from '../protocol.js'
import { Fact, JsonTree } from './json-tree.js'
import { RequestTab } from './request-tab.js'
import { formatClock, formatStatePath, formatWord, joinNames, sessionAddress } from './format.js'
import { forkableStates } from '../session-query.js'

interface RunTabProps extends Omit<CostProps, 'budget'> {
  tab: 'request' | 'state' | 'guards' | 'cost' | 'record'
  moment: MomentView
  row: RecordRow
  request: number
  loadRequest: (seq: number, all: boolean) => Promise<RequestView>
}

export function RunTab({ tab, moment, row, request, loadRequest, ...costs }: RunTabProps) {
  switch (tab) {
    case 'request':
      return <RequestTab key={request} seq={request} load={loadRequest} />
    case 'state':
      return <StateTab moment={moment} row={row} />
    case 'guards':
      return <GuardsTab guards={moment.guards} isActive={forkableStates.has(row.state)} />
    case 'cost':
      return <CostTab budget={moment.budget} {...costs} />
    default:
      return <RecordTab moment={moment} row={row} bars={costs.bars} />
  }
}

function RecordTab({ moment, row, bars }: { moment: MomentView; row: RecordRow; bars: readonly Bar[] }) {
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
                <a href={sessionAddress(sessionId)}>{label}</a>
              </li>
            ))}
          </ul>
        </section>
      )}
      {row.transitionIds.length > 0 && (
        <section>
          <h2>Transitions taken</h2>
          <ol class="taken-list">
            {row.transitionIds.map((id, index) => (
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

type ShownContext = Partial<Omit<AgentContext, 'messages'>> & { messages?: string }

function StateTab({ moment, row }: { moment: MomentView; row: RecordRow }) {
  const { changed } = moment
  const context = (moment.context ?? {}) as ShownContext
  const { maxSteps = null } = context.config?.limits ?? {}
  const { calls = [], nudges = [], steering = [], skills = [], loaded = [] } = context
  return (
    <div class="stack">
      <dl class="facts">
        <Fact name="State">
          {formatStatePath(row.to) || 'not started'}
          {context.reason ? ` (${formatWord(context.reason)})` : ''}
        </Fact>
        <Fact name="Answers">
          {context.steps ?? 0} {maxSteps === null ? 'without a step limit' : `of ${maxSteps} steps`}
        </Fact>
        {(context.attempt ?? 1) > 1 && (
          <Fact name="Attempt">
            {context.attempt} of {context.config?.retry?.maxAttempts}
          </Fact>
        )}
        {context.speaker && <Fact name="Agent">{context.speaker}</Fact>}
        <Fact name="Transcript">
          {context.messages ?? 'empty'}
          {context.fit ? ', partly omitted from requests' : ''}
        </Fact>
        {calls.length > 0 && (
          <Fact name="Calls">
            {calls
              .map(
                (call) =>
                  `${call.name} ${formatWord(call.result?.status ?? (call.started ? 'running' : 'open'))}`,
              )
              .join(', ')}
          </Fact>
        )}
        {nudges.length > 0 && (
          <Fact name="Nudges">{formatCount(nudges.length, 'nudge')} for the next request</Fact>
        )}
        {steering.length > 0 && <Fact name="Steering">{formatCount(steering.length, 'message')} queued</Fact>}
        {skills.length > 0 && <Fact name="Skills">{skills.map(({ name }) => name).join(', ')}</Fact>}
        {loaded.length > 0 && <Fact name="Loaded">{loaded.join(', ')}</Fact>}
        {context.wakeAt != null && <Fact name="Wakes up">{formatWakeTime(context.wakeAt)}</Fact>}
        {context.deadline != null && <Fact name="Deadline">{formatWakeTime(context.deadline)}</Fact>}
        {context.error?.message && <Fact name="Error">{context.error.message}</Fact>}
        <Fact name="Changed">{changed.length === 0 ? 'nothing' : changed.join(', ')}</Fact>
      </dl>
      <details>
        <summary>Raw context</summary>
        <JsonTree value={moment.context} changed={changed} />
      </details>
    </div>
  )
}

function GuardsTab({ guards, isActive }: { guards: readonly GuardView[]; isActive: boolean }) {
  if (guards.length === 0) return <p class="empty">This machine has no guards.</p>
  const sorted = guards.toSorted(
    (a, b) => Number(b.isOn) - Number(a.isOn) || measureNearness(b) - measureNearness(a),
  )
  return (
    <ul class="guards">
      {sorted.map((guard) => {
        const { name, watches, streak, threshold, evidence, next, isOn } = guard
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
            {watches !== '' && <p class="does">{watches}</p>}
            {evidence !== '' && <p class="evidence">{evidence}</p>}
            {isActive && isOn && next !== '' && <p class="next">Next: {next}</p>}
          </li>
        )
      })}
    </ul>
  )
}

function measureNearness({ streak, threshold }: GuardView): number {
  return streak === null || threshold === null || threshold === 0 ? 0 : streak / threshold
}

interface CostProps {
  budget: readonly GaugeView[]
  /** The elapsed time of a run without a deadline, whose budget does not count time. */
  elapsedMs: number
  rows: readonly RecordRow[]
  steps: readonly RunStep[]
  place: number
  bars: readonly Bar[]
  onStep: (step: RunStep) => void
}

function CostTab({ budget, elapsedMs, rows, steps, place, bars, onStep }: CostProps) {
  return (
    <div class="stack">
      {place < rows.length - 1 && (
        <p class="next">
          Up to record {rows[place]?.seq} of {rows.at(-1)?.seq}
        </p>
      )}
      <Spenders rows={rows.slice(0, place + 1)} bars={bars} />
      <StepCosts steps={steps.filter(({ from, tokens }) => from <= place && tokens > 0)} onStep={onStep} />
      <Gauges budget={budget} elapsedMs={elapsedMs} />
    </div>
  )
}

function Spenders({ rows, bars }: { rows: readonly RecordRow[]; bars: readonly Bar[] }) {
  const sums = new Map<string, { by: string; name: string; count: number; tokens: number; paid: CostSum }>()
  for (const { spent, paid } of rows) {
    if (!spent) continue
    const key = `${spent.by} ${spent.name}`
    const sum = sums.get(key) ?? { by: spent.by, name: spent.name, count: 0, tokens: 0, paid: sumCosts([]) }
    sums.set(key, {
      ...sum,
      count: sum.count + 1,
      tokens: sum.tokens + spent.tokens,
      paid: addCosts([sum.paid, sumCosts([paid])]),
    })
  }
  if (sums.size === 0) return null
  const sorted = [...sums.values()].toSorted((a, b) => b.paid.usd - a.paid.usd || b.tokens - a.tokens)
  return (
    <SpendTable caption="Cost by model, tool and sub-agent" head="Source">
      {sorted.map(({ by, name, count, tokens, paid }) => {
        const child = by === 'sub-agent' && bars.find(({ sessionId, label }) => sessionId && label === name)
        return (
          <tr key={`${by} ${name}`}>
            <th scope="row">
              {child ? <a href={sessionAddress(child.sessionId ?? '')}>{name}</a> : name || 'unnamed model'}
              <small>
                {by}
                {by === 'model' && `, ${formatCount(count, 'request')}`}
              </small>
            </th>
            <td>{formatCount(tokens)}</td>
            <td>{formatCost(paid)}</td>
          </tr>
        )
      })}
    </SpendTable>
  )
}

function SpendTable({
  caption,
  head,
  children,
}: {
  caption: string
  head: string
  children: ComponentChildren
}) {
  return (
    <table class="spenders">
      <caption class="sr">{caption}</caption>
      <thead>
        <tr>
          {[head, 'Tokens', 'Cost'].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

const mostSteps = 20

function StepCosts({ steps, onStep }: Pick<CostProps, 'steps' | 'onStep'>) {
  if (steps.length === 0) return null
  const sorted = steps.toSorted((a, b) => b.cost.usd - a.cost.usd || b.tokens - a.tokens)
  return (
    <SpendTable caption="Cost by step" head="Most expensive steps">
      {sorted.slice(0, mostSteps).map((step) => (
        <tr key={toStepKey(step)}>
          <th scope="row">
            <button class="link" onClick={() => onStep(step)}>
              Step {step.step}
            </button>
            <small>
              {step.calls.length === 0 ? step.label : joinNames(step.calls.map(({ name }) => name))}
            </small>
          </th>
          <td>{formatCount(step.tokens)}</td>
          <td>{formatCost(step.cost)}</td>
        </tr>
      ))}
    </SpendTable>
  )
}

function Gauges({ budget, elapsedMs }: Pick<CostProps, 'budget' | 'elapsedMs'>) {
  const formats: Partial<Record<GaugeView['name'], (value: number) => string>> = {
    cost: formatMoney,
    time: formatDuration,
  }
  const say = (name: GaugeView['name'], value: number | null): string =>
    value === null ? 'unknown' : (formats[name] ?? formatCount)(value)
  return (
    <ul class="gauges">
      {budget.map(({ name, used: counted, limit, children, inherited }) => {
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
                inner={(children ?? 0) / limit}
                label={`${name}: ${say(name, used)} of ${say(name, limit)}`}
              />
            )}
            {children !== 0 && <p class="next">Sub-agents: {say(name, children)}</p>}
            {inherited !== 0 && <p class="next">From the original: {say(name, inherited)}</p>}
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

import type { ComponentChildren } from 'preact'
import type { AgentContext } from '../../../machines/agent/context.js'
import { getOrCreate } from '../../core/base/values.js'
import { formatWakeTime } from '../../core/base/clock.js'
import { formatDuration, formatMoney, formatCount } from '../../core/format/format-words.js'
import { addCosts, type CostSum, formatCost, sumCosts } from '../costs.js'
import { type RunStep, toStepKey } from '../run-steps.js'
import type { Bar, GaugeView, GuardView, MomentView, RecordRow, SessionView } from '../protocol.js'
import { Facts, JsonTree } from './json-tree.js'
import { Table } from './long-text.js'
import { RequestTab } from './request-tab.js'
import type { RunPage, Tab } from './run-page.js'
import { formatClock, formatStatePath, formatWord, joinNames, sessionAddress } from '../format.js'
import { paths } from '../routes.js'
import { forkableStates, isRequestEnd } from '../session-query.js'

interface RunTabProps {
  run: RunPage
  moment: MomentView
}

export function RunTab({ tab, run, moment }: RunTabProps & { tab: Tab }) {
  const { row, source, view } = run
  const seq = findRequest(run)
  switch (tab) {
    case 'request':
      return (
        <RequestTab
          key={seq}
          seq={seq}
          load={(seq, all) => source.send(paths.request(view.session.id, seq, all))}
        />
      )
    case 'state':
      return <StateTab moment={moment} row={row} />
    case 'guards':
      return <GuardsTab guards={moment.guards} isActive={forkableStates.has(row.state)} />
    case 'cost':
      return <CostTab run={run} moment={moment} />
    default:
      return <RecordTab moment={moment} row={row} bars={view.bars} />
  }
}

/** Of several requests, the last one at or before this record, or else the first. 0 if there is none. */
function findRequest({ view: { rows }, row, step }: RunPage): number {
  if (!step) return 0
  const ends = rows.slice(step.from, step.to + 1).filter(isRequestEnd)
  return (ends.findLast(({ seq }) => seq <= row.seq) ?? ends[0])?.seq ?? 0
}

function RecordTab({ moment, row, bars }: { moment: MomentView; row: RecordRow; bars: readonly Bar[] }) {
  const children = bars.filter(
    ({ sessionId, fromSeq, toSeq }) =>
      sessionId !== undefined && fromSeq <= row.seq && row.seq <= (toSeq ?? Infinity),
  )
  return (
    <div class="stack">
      <Facts
        of={{
          Record: `${row.seq} · ${row.type} · ${formatClock(row.at)}`,
          From: formatStatePath(row.from) || 'nothing',
          To: formatStatePath(row.to) || 'nothing',
          Started: row.started.join(', '),
        }}
      />
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
      <Facts
        of={{
          State: `${formatStatePath(row.to) || 'not started'}${context.reason ? ` (${formatWord(context.reason)})` : ''}`,
          Answers: `${context.steps ?? 0} ${maxSteps === null ? 'without a step limit' : `of ${maxSteps} steps`}`,
          Attempt:
            (context.attempt ?? 1) > 1 && `${context.attempt} of ${context.config?.retry?.maxAttempts}`,
          Agent: context.speaker,
          Transcript: `${context.messages ?? 'empty'}${context.fit ? ', partly omitted from requests' : ''}`,
          Calls: calls
            .map(
              ({ name, result, started }) =>
                `${name} ${formatWord(result?.status ?? (started ? 'running' : 'open'))}`,
            )
            .join(', '),
          Nudges: nudges.length > 0 && `${formatCount(nudges.length, 'nudge')} for the next request`,
          Steering: steering.length > 0 && `${formatCount(steering.length, 'message')} queued`,
          Skills: skills.map(({ name }) => name).join(', '),
          Loaded: loaded.join(', '),
          'Wakes up': context.wakeAt != null && formatWakeTime(context.wakeAt),
          Deadline: context.deadline != null && formatWakeTime(context.deadline),
          Error: context.error?.message,
          Changed: changed.join(', ') || 'nothing',
        }}
      />
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
          <Gauge
            key={name}
            name={name}
            class={isOn ? (measureNearness(guard) >= 1 ? 'speaks' : '') : 'is-off'}
            said={isOn ? (counts ? `${streak} of ${threshold}` : 'on') : 'off'}
            part={counts && isOn ? streak / threshold : null}
          >
            {watches !== '' && <p class="does">{watches}</p>}
            {evidence !== '' && <p class="evidence">{evidence}</p>}
            {isActive && isOn && next !== '' && <p class="next">Next: {next}</p>}
          </Gauge>
        )
      })}
    </ul>
  )
}

function measureNearness({ streak, threshold }: GuardView): number {
  return streak === null || threshold === null || threshold === 0 ? 0 : streak / threshold
}

function CostTab({ run, moment }: RunTabProps) {
  const { view, row, place, steps, go, setTab } = run
  const { rows, bars } = view
  return (
    <div class="stack">
      {place < rows.length - 1 && (
        <p class="next">
          Up to record {row.seq} of {rows.at(-1)?.seq}
        </p>
      )}
      <Spenders rows={rows.slice(0, place + 1)} bars={bars} />
      <StepCosts
        steps={steps.filter(({ from, tokens }) => from <= place && tokens > 0)}
        onStep={(step) => {
          go(step.place)
          setTab('request')
        }}
      />
      <Gauges
        budget={moment.budget}
        elapsedMs={Math.max(0, row.at - (rows.find(({ run }) => run === row.run)?.at ?? 0))}
      />
    </div>
  )
}

function Spenders({ rows, bars }: Pick<SessionView, 'rows' | 'bars'>) {
  const sums = new Map<string, { by: string; name: string; count: number; tokens: number; paid: CostSum }>()
  for (const { spent, paid } of rows) {
    if (!spent) continue
    const { by, name, tokens } = spent
    const sum = getOrCreate(sums, `${by} ${name}`, () => ({
      by,
      name,
      count: 0,
      tokens: 0,
      paid: sumCosts([]),
    }))
    sum.count++
    sum.tokens += tokens
    sum.paid = addCosts([sum.paid, sumCosts([paid])])
  }
  if (sums.size === 0) return null
  const sorted = [...sums.values()].toSorted((a, b) => b.paid.usd - a.paid.usd || b.tokens - a.tokens)
  return (
    <Table class="spenders" caption="Cost by model, tool and sub-agent" head={['Source', ...amounts]}>
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
    </Table>
  )
}

const amounts = ['Tokens', 'Cost']
const mostSteps = 20

interface StepCostsProps {
  steps: readonly RunStep[]
  onStep: (step: RunStep) => void
}

function StepCosts({ steps, onStep }: StepCostsProps) {
  if (steps.length === 0) return null
  const sorted = steps.toSorted((a, b) => b.cost.usd - a.cost.usd || b.tokens - a.tokens)
  return (
    <Table class="spenders" caption="Cost by step" head={['Most expensive steps', ...amounts]}>
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
    </Table>
  )
}

/** `elapsedMs` is for a run without a deadline, whose budget does not count time. */
function Gauges({ budget, elapsedMs }: Pick<MomentView, 'budget'> & { elapsedMs: number }) {
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
          <Gauge
            key={name}
            name={name}
            said={`${say(name, used)}${limit === null ? ', no limit' : ` of ${say(name, limit)}`}`}
            part={limit !== null && limit > 0 && used !== null ? used / limit : null}
            inner={(children ?? 0) / (limit ?? 1)}
          >
            {children !== 0 && <p class="next">Sub-agents: {say(name, children)}</p>}
            {inherited !== 0 && <p class="next">From the original: {say(name, inherited)}</p>}
          </Gauge>
        )
      })}
    </ul>
  )
}

interface GaugeProps {
  name: string
  class?: string
  said: string
  /** The used share of the limit. Null if there is no limit. */
  part: number | null
  inner?: number
  children: ComponentChildren
}

function Gauge({ name, class: kind, said, part, inner = 0, children }: GaugeProps) {
  const percent = (value: number): string => `${Math.min(100, Math.max(0, value * 100))}%`
  return (
    <li class={kind}>
      <div class="guard-head">
        <strong>{name}</strong>
        <span>{said}</span>
      </div>
      {part !== null && (
        <div
          class={`meter${part >= 1 ? ' full' : part >= 0.75 ? ' near' : ''}`}
          role="meter"
          aria-label={`${name}: ${said}`}
          aria-valuenow={Math.round(Math.min(1, part) * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <div class="meter-fill" style={{ width: percent(part) }} />
          {inner > 0 && <div class="meter-inner" style={{ width: percent(inner) }} />}
        </div>
      )}
      {children}
    </li>
  )
}

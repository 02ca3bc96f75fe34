import { formatDuration } from '../../core/format/format-words.js'
import { formatCost, sumCosts } from '../costs.js'
import { Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Bar, RecordRow, SessionView } from '../protocol.js'
import { isFailed } from '../session-query.js'
import { formatWord, getLastPart, getTone, joinNames } from '../format.js'
import { flagWords, Icon, sortFlags } from './icons.js'
import { useTimeout } from './page.js'
import type { RunPage } from './run-page.js'
import {
  type Axis,
  grain,
  listSeenBars,
  listStretches,
  type PlacedBar,
  placeLanes,
} from '../timeline-layout.js'

const lanes: Record<Bar['lane'], string> = {
  model: 'Model',
  tools: 'Tools',
  shields: 'Shields',
  memory: 'Memory',
  waits: 'Waits',
  children: 'Sub-agents',
}

const markSlots = 80

export function toPercent(share: number): string {
  return `${share * 100}%`
}

export function TimelineLanes({ run, axis }: { run: RunPage; axis: Axis }) {
  const { areLanesShown } = run
  const { rows, gaps } = run.view
  // With many bars, the rest of the page is drawn first.
  const [isDue, setDue] = useState(rows.length < 200)
  useTimeout(isDue ? null : 50, () => setDue(true), [isDue])
  const [areChildrenOpen, openChildren] = useState(false)
  const placed = areLanesShown && isDue ? placeLanes(run.view, Object.keys(lanes) as Bar['lane'][]) : []
  const gapPlaces = gaps.map(({ to }) => rows.findIndex(({ at }) => at >= to)).filter((at) => at > 0)
  return (
    <>
      <div class="lane band">
        <span class="lane-name">State</span>
        <div class="track" aria-hidden="true">
          {(isDue ? listSeenStretches(rows, axis) : []).map(({ state, from, to }) => (
            <div
              key={from}
              class={`stretch tone-${getTone(state)} region-${getLastPart(state)}`}
              style={toSpan(axis.edge(from), axis.edge(to))}
              title={state.replaceAll('.', ' › ')}
              data-place={from}
            >
              {axis.edge(to) - axis.edge(from) > 0.03 && <span>{toShortName(state)}</span>}
            </div>
          ))}
          {axis.cuts.map(({ from, to, ms }) => (
            <div key={from} class="cut" style={toSpan(from, to)} title={`${formatDuration(ms)} idle`} />
          ))}
          {gapPlaces.map((at) => (
            <div key={at} class="gap" style={{ left: toPercent(axis.edge(at)) }} title="No process" />
          ))}
        </div>
      </div>
      <Marks rows={rows} axis={axis} />
      {placed.map(({ lane, placed, lines }) => {
        const folds = lane === 'children' && placed.some(({ bar }) => bar.sessionId !== undefined)
        return (
          <Fragment key={lane}>
            <div class={`lane lane-${lane}`} style={{ '--lines': lines }}>
              {folds ? (
                <button
                  class="lane-name folds"
                  aria-expanded={areChildrenOpen}
                  onClick={() => openChildren(!areChildrenOpen)}
                >
                  {lanes[lane]}
                </button>
              ) : (
                <span class="lane-name">{lanes[lane]}</span>
              )}
              <div class="track" aria-hidden="true">
                {listSeenBars(placed, axis).map(({ bar, to, line, left, right, merged }) => (
                  <div
                    key={bar.id}
                    class={`bar ${bar.status}`}
                    style={{ ...toSpan(left, right), '--line': line }}
                    // A click jumps to the end of the bar or, on merged bars, to the record at the pointer.
                    {...(merged === null
                      ? { 'data-place': to, 'data-bar': bar.id }
                      : { title: formatMerged(merged) })}
                  >
                    {right - left > 0.03 && (
                      <span>{merged === null ? formatBar(bar, run.now) : formatMerged(merged)}</span>
                    )}
                  </div>
                ))}
              </div>
            </div>
            {folds && areChildrenOpen && <ChildLanes placed={placed} axis={axis} load={run.loadSession} />}
          </Fragment>
        )
      })}
      {areLanesShown && isDue && <CostLine rows={rows} axis={axis} />}
    </>
  )
}

/** `WAITING_FOR_TOOL` → `tool`, because most stretches have room for one word. */
function toShortName(state: string): string {
  return formatWord(getLastPart(state).replace('WAITING_FOR_', '')).toLowerCase()
}

function toSpan(from: number, to: number): { left: string; width: string } {
  // Clipped, because browsers do not draw widths of millions of pixels.
  const [left, right] = [Math.max(-0.5, from), Math.min(1.5, to)]
  return { left: toPercent(left), width: toPercent(Math.max(0, right - left)) }
}

function formatBar({ label, from, to }: Bar, now?: number): string {
  const end = to ?? now
  return end === undefined ? label : `${label} ${formatDuration(Math.max(0, end - from))}`
}

/** `12 look_up, 3 read_file · 40 ms` */
function formatMerged(bars: readonly Bar[]): string {
  const names = bars.map(({ label }) => label)
  return `${joinNames(names, '')} · ${formatDuration(bars.reduce((sum, { from, to }) => sum + ((to ?? from) - from), 0))}`
}

function listSeenStretches(rows: readonly RecordRow[], axis: Axis) {
  let drawnTo = -Infinity
  return listStretches(rows).filter(({ from, to }) => {
    const [left, right] = [axis.edge(from), axis.edge(to)]
    if (right < 0 || left > 1 || (right - left < grain && right < drawnTo + grain)) return false
    drawnTo = right
    return true
  })
}

const listMarks = ({ flags, calls }: RecordRow): RecordRow['flags'] =>
  calls.some(isFailed) ? [...flags, 'error'] : flags

/** Event markers. The most severe marker represents its close neighbors. */
function Marks({ rows, axis }: { rows: readonly RecordRow[]; axis: Axis }) {
  if (!rows.some((row) => listMarks(row).length > 0)) return null
  const slots = new Map<number, { index: number; x: number; flags: RecordRow['flags'] }>()
  for (const [index, row] of rows.entries()) {
    const own = listMarks(row)
    if (own.length === 0) continue
    const x = axis.at(index)
    if (x < 0 || x > 1) continue
    const slot = Math.floor(x * markSlots)
    const before = slots.get(slot)
    const flags = sortFlags([...new Set([...own, ...(before?.flags ?? [])])])
    const isGraver =
      before === undefined || sortFlags([before.flags[0] ?? 'fork', ...own])[0] !== before.flags[0]
    slots.set(slot, isGraver ? { index, x, flags } : { ...before, flags })
  }
  return (
    <div class="lane marks">
      <span class="lane-name">Marks</span>
      <div class="track" aria-hidden="true">
        {[...slots.values()].map(({ index, x, flags }) => (
          <span
            key={index}
            class={`flag flag-${flags[0] ?? 'error'}`}
            style={{ left: toPercent(x) }}
            title={flags.map((flag) => flagWords[flag]).join(', ')}
            data-place={index}
          >
            <Icon name={flags[0] ?? 'error'} size={14} />
          </span>
        ))}
      </div>
    </div>
  )
}

function CostLine({ rows, axis }: { rows: readonly RecordRow[]; axis: Axis }) {
  const total = sumCosts(rows.map(({ paid }) => paid))
  if (total.usd === 0) return null
  let spent = 0
  const height = (): string => (19 - (spent / total.usd) * 18).toFixed(2)
  let path = `M-500,${height()}`
  for (const [place, { paid }] of rows.entries()) {
    if (!paid) continue
    path += `H${(Math.min(1.5, Math.max(-0.5, axis.at(place))) * 1000).toFixed(1)}`
    spent += paid
    path += `V${height()}`
  }
  return (
    <div class="lane lane-cost">
      <span class="lane-name">Cost</span>
      <div class="track" aria-hidden="true" title={`${formatCost(total)} in total`}>
        <svg viewBox="0 0 1000 20" preserveAspectRatio="none">
          <path d={`${path}H1500`} />
        </svg>
      </div>
    </div>
  )
}

interface ChildLanesProps {
  placed: readonly PlacedBar[]
  axis: Axis
  load: RunPage['loadSession']
}

function ChildLanes({ placed, axis, load }: ChildLanesProps) {
  const [views, setViews] = useState<ReadonlyMap<string, SessionView>>(new Map())
  const wanted = placed.flatMap(({ bar }) => bar.sessionId ?? []).join('\n')
  useEffect(() => {
    let isOver = false
    for (const id of new Set(wanted.split('\n').filter(Boolean))) {
      load(id).then(
        (view) => isOver || setViews((before) => new Map(before).set(id, view)),
        () => undefined,
      )
    }
    return () => {
      isOver = true
    }
  }, [wanted, load])
  return (
    <>
      {placed.map((one) => {
        const { bar, to } = one
        const [left, right] = axis.span(one)
        const inner = views.get(bar.sessionId ?? '')?.bars ?? []
        const end = bar.to ?? Math.max(bar.from, ...inner.map((own) => own.to ?? own.from))
        const at = (time: number): number =>
          left +
          (end > bar.from ? Math.min(1, Math.max(0, (time - bar.from) / (end - bar.from))) : 0) *
            (right - left)
        return (
          <div key={bar.id} class="lane inner-lane">
            <span class="lane-name">→ {bar.label}</span>
            <div class="track" aria-hidden="true">
              {inner
                // The session may have done other work before and after.
                .filter((own) => own.from <= end && (own.to ?? end) >= bar.from)
                .map((own) => (
                  <div
                    key={own.id}
                    class={`bar ${own.status} of-${own.lane}`}
                    style={toSpan(at(own.from), at(own.to ?? end))}
                    title={`${bar.label}: ${own.label}, ${own.status}${own.to === null ? '' : `, ${formatDuration(own.to - own.from)}`}`}
                    data-place={to}
                  />
                ))}
            </div>
          </div>
        )
      })}
    </>
  )
}

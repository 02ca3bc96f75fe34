import { getOrCreate } from '../../core/base/values.js'
import { formatCount, formatDuration } from '../../core/format/format-words.js'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type CostSum, formatCost, addCosts } from '../costs.js'
import type { RecordRow, SessionRow, SessionView, SettledCall } from '../protocol.js'
import { isFailed } from '../session-query.js'
import { formatShort, sessionAddress } from '../format.js'
import { flagWords, Icon, sortFlags } from './icons.js'
import { memoize, showTabs, useLatest } from './run-hooks.js'
import type { RunPage } from './run-page.js'
import {
  createStepFilter,
  listRunSteps,
  mergeSteps,
  type RunStep,
  type StepLine,
  toStepKey,
} from '../run-steps.js'

/** In pixels, and the same for all lines, so that only visible lines have to be rendered. */
const lineHeight = 46
const linesAround = 12

export function StepsPane({ run }: { run: RunPage }) {
  const { view, steps, stepWords: words, place, go } = run
  const { rows, session, parent } = view
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [shownChildren, setShownChildren] = useState<ReadonlyMap<string, SessionView | null>>(new Map())
  const found = useMemo(() => findSteps(steps, words), [steps, words])
  const lines = useMemo(
    () => listLines(mergeSteps(found, opened), shownChildren),
    [found, opened, shownChildren],
  )
  const longest = useMemo(
    () => Math.max(1, ...steps.map((step) => step.modelMs + step.toolMs + step.waitMs)),
    [steps],
  )
  const current = lines.findLastIndex((line) => line.kind === 'steps' && line.line[0].from <= place)
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  /** The visible height in pixels, or 0 if unknown. */
  const [seen, setSeen] = useState(0)
  const height = seen || 600
  useLayoutEffect(() => {
    const frame = box.current
    if (!frame) return undefined
    const observer = new ResizeObserver(() => setSeen(frame.clientHeight))
    observer.observe(frame)
    return () => observer.disconnect()
  }, [])
  // Uses the position from scroll events. Reading it from the element would force a layout.
  useLayoutEffect(() => {
    const frame = box.current
    const at = current * lineHeight
    if (!frame || current === -1 || (at >= top && at + lineHeight <= top + height)) return
    const next = Math.max(0, at - height / 2)
    frame.scrollTop = next
    setTop(next)
  }, [current, seen > 0])
  const from = Math.max(0, Math.floor(top / lineHeight) - linesAround)
  const to = Math.min(lines.length, Math.ceil((top + height) / lineHeight) + linesAround)
  const toggle = useLatest((key: string): void =>
    setOpened((before) => {
      const next = new Set(before)
      if (!next.delete(key)) next.add(key)
      return next
    }),
  )
  const toggleChild = (id: string): void => {
    if (shownChildren.has(id)) {
      setShownChildren((before) => new Map([...before].filter(([one]) => one !== id)))
      return
    }
    setShownChildren((before) => new Map(before).set(id, null))
    run.loadSession(id).then(
      (view) => setShownChildren((before) => (before.has(id) ? new Map(before).set(id, view) : before)),
      () => undefined,
    )
  }
  return (
    <section class="steps" aria-label="Steps">
      <div class="steps-head">
        <label class="sr" for="find-steps">
          Find steps
        </label>
        <input
          id="find-steps"
          type="search"
          value={words}
          placeholder="tool:pay failed:pay >1s cost>0.01"
          title="Plain words, tool:NAME, failed:NAME, state:NAME, error, >1s, tokens>500, cost>0.01"
          onInput={(event) => run.setStepWords(event.currentTarget.value)}
        />
        {words.trim() !== '' && (
          <p role="status">
            {formatCount(found.length, 'step')} of {steps.length}
          </p>
        )}
        {parent !== null && <a href={sessionAddress(parent)}>← A sub-agent of {parent}</a>}
      </div>
      <div
        class="steps-box"
        ref={box}
        role="group"
        aria-label={formatCount(lines.length, 'line')}
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <ol style={{ height: `${lines.length * lineHeight}px` }}>
          {lines.slice(from, to).map((line, index) => (
            <li
              key={line.key}
              style={{ top: `${(from + index) * lineHeight}px` }}
              aria-setsize={lines.length}
              aria-posinset={from + index + 1}
            >
              {line.kind === 'steps' ? (
                <Line
                  line={line.line}
                  mark={findMark(line.line[0], rows, session.marks)}
                  isCurrent={from + index === current}
                  longest={longest}
                  onPlace={go}
                  onToggle={toggle}
                />
              ) : line.kind === 'child' ? (
                <span class="step child">
                  <button
                    class="folds"
                    aria-expanded={shownChildren.has(line.id)}
                    onClick={() => toggleChild(line.id)}
                  >
                    {line.label}
                  </button>
                  <a href={sessionAddress(line.id)}>Open</a>
                </span>
              ) : (
                <a class="step inner" href={sessionAddress(line.id, line.seq)}>
                  <span class="step-number">{line.step.step}</span>
                  <Said step={line.step} />
                  <Took step={line.step} longest={longest} />
                </a>
              )}
            </li>
          ))}
        </ol>
        {lines.length === 0 && <p class="empty">No matching steps</p>}
      </div>
    </section>
  )
}

export function findSteps(steps: readonly RunStep[], words: string): RunStep[] {
  return words.trim() === '' ? [...steps] : steps.filter(createStepFilter(words))
}

/** The mark may be on any of the step's records. */
export function findMark(
  { from, to }: Pick<RunStep, 'from' | 'to'>,
  rows: readonly RecordRow[],
  marks: SessionRow['marks'],
): SessionRow['marks'][number] | undefined {
  const [first, last] = [rows[from]?.seq ?? 0, rows[to]?.seq ?? 0]
  return marks.find(({ seq }) => seq >= first && seq <= last)
}

type ListLine =
  | { kind: 'steps'; key: string; line: StepLine }
  | { kind: 'child'; key: string; id: string; label: string }
  | { kind: 'childStep'; key: string; id: string; seq: number; step: RunStep }

function listLines(
  merged: readonly StepLine[],
  children: ReadonlyMap<string, SessionView | null>,
): ListLine[] {
  return merged.flatMap((line): ListLine[] => [
    { kind: 'steps', key: toStepKey(line[0]), line },
    ...(line.length > 1 ? [] : line[0].children).flatMap(({ label, sessionId: id }): ListLine[] => {
      const view = children.get(id)
      return [
        { kind: 'child', key: id, id, label },
        ...(view ? listRunSteps(view) : []).map(
          (step): ListLine => ({
            kind: 'childStep',
            key: `${id} ${toStepKey(step)}`,
            id,
            seq: view?.rows[step.place]?.seq ?? 1,
            step,
          }),
        ),
      ]
    }),
  ])
}

interface LineProps {
  line: StepLine
  mark: SessionRow['marks'][number] | undefined
  isCurrent: boolean
  longest: number
  onPlace: (place: number) => void
  onToggle: (key: string) => void
}

/** Memoized, because moving to another record changes only two lines. */
const Line = memoize(({ line, mark, isCurrent, longest, onPlace, onToggle }: LineProps) => {
  const [first] = line
  const last = line.at(-1) ?? first
  const isMerged = line.length > 1
  return (
    <button
      class={`step${first.hasFailed ? ' failed' : ''}${isMerged ? ' merged' : ''}`}
      {...(isCurrent && { 'aria-current': 'step' as const })}
      onClick={() => {
        onPlace(first.place)
        if (isMerged) onToggle(toStepKey(first))
        else showTabs()
      }}
      {...(isMerged && { 'aria-expanded': false })}
    >
      <span class="step-number">{isMerged ? `${first.step}–${last.step}` : first.step}</span>
      <Said step={first} times={line.length} mark={isMerged ? undefined : mark} />
      {isMerged ? (
        <span class="step-took">
          <span>{formatDuration(line.reduce((sum, { ms }) => sum + ms, 0))}</span>
          <span>{formatShort(line.reduce((sum, { tokens }) => sum + tokens, 0))} tok</span>
          <Price cost={addCosts(line.map(({ cost }) => cost))} />
        </span>
      ) : (
        <Took step={first} longest={longest} />
      )}
    </button>
  )
})

function Said({ step, times = 1, mark }: { step: RunStep; times?: number; mark?: LineProps['mark'] }) {
  const { calls, open, handedTo, label } = step
  const groups = groupCalls(calls)
  return (
    <span class="step-said">
      {times > 1 && <b>{times} ×</b>}
      {groups.map(({ name, status, count }) => (
        <span key={`${name} ${status}`} class={`step-call ${toOutcome(status)}`} title={`${name}: ${status}`}>
          <Icon name={toOutcome(status)} size={13} />
          {count > 1 ? `${count} × ${name}` : name}
          <span class="sr">{status}</span>
        </span>
      ))}
      {open.map((name, index) => (
        <span key={index} class="step-call open">
          <Icon name="wait" size={13} />
          {name}
        </span>
      ))}
      {handedTo !== null && <span class="step-call">→ {handedTo}</span>}
      {groups.length === 0 && open.length === 0 && <span class="step-label">{label}</span>}
      {mark && (
        <span class={`step-mark mark-${mark.mark}`} title={mark.note || `marked as ${mark.mark}`}>
          <Icon name={mark.mark} size={14} />
          <span class="sr">marked as {mark.mark}</span>
        </span>
      )}
      {sortFlags(step.flags.filter((flag) => flag !== 'block' && flag !== 'wait')).map((flag) => (
        <span key={flag} class={`step-flag flag-${flag}`} title={flagWords[flag]}>
          <Icon name={flag} size={13} />
          <span class="sr">{flagWords[flag]}</span>
        </span>
      ))}
    </span>
  )
}

function toOutcome(status: string): 'ok' | 'error' | 'block' {
  if (status === 'ok') return 'ok'
  return isFailed({ status }) ? 'error' : 'block'
}

function groupCalls(calls: readonly SettledCall[]) {
  const groups = new Map<string, { name: string; status: string; count: number }>()
  for (const { name, status } of calls)
    getOrCreate(groups, `${name} ${status}`, () => ({ name, status, count: 0 })).count++
  return [...groups.values()]
}

function Took({ step, longest }: { step: RunStep; longest: number }) {
  const { ms, modelMs, toolMs, waitMs, tokens, cost } = step
  const width = (part: number): string => `${Math.min(100, (part / longest) * 100)}%`
  return (
    <span class="step-took">
      <span class="step-bar" aria-hidden="true">
        <i class="share-model" style={{ width: width(modelMs) }} />
        <i class="share-tools" style={{ width: width(toolMs) }} />
        <i class="share-waits" style={{ width: width(waitMs) }} />
      </span>
      <span>{formatDuration(ms)}</span>
      {waitMs > ms / 2 && <span class="sr">, mostly waiting</span>}
      {tokens > 0 && <span>{formatShort(tokens)} tok</span>}
      {tokens > 0 && <Price cost={cost} />}
    </span>
  )
}

/** An unknown price is short, because it can appear on every line. */
function Price({ cost }: { cost: CostSum }) {
  return cost.isWhole || cost.usd > 0 ? (
    <span>{formatCost(cost)}</span>
  ) : (
    <span title="cost unknown" role="img" aria-label="cost unknown">
      $ ?
    </span>
  )
}

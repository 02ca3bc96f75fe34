import type { ComponentChildren } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { formatCount, formatDuration, formatMoney, getCachedPercent } from '../../core/format/format-words.js'
import { formatCost } from '../costs.js'
import type { RecordRow, SessionRow, SessionView, VerdictView } from '../protocol.js'
import { isFailed } from '../session-query.js'
import {
  formatShort,
  formatStatePath,
  formatWord,
  getTone,
  type Tone,
  compareAddress,
  formatError,
} from './format.js'
import { Icon, type IconName } from './icons.js'
import { Refusal } from './loading.js'
import { showTabs } from './run-hooks.js'
import { type RunStep, shareTime, type TimeShares, toPercents } from './run-steps.js'

export function RunHead({
  view,
  row,
  step,
  onFork,
  readOnly,
  children,
}: {
  view: SessionView
  row: RecordRow
  step: RunStep | undefined
  onFork: (() => void) | null
  readOnly: string | null
  children: ComponentChildren
}) {
  const { session, forks, rows } = view
  const { id } = session
  const models = useMemo(
    () =>
      [
        ...new Set([
          ...session.models,
          ...rows.flatMap(({ spent }) => (spent?.by === 'model' ? spent.name : [])),
        ]),
      ]
        .filter(Boolean)
        .join(', '),
    [rows, session.models],
  )
  return (
    <div class="run-head">
      <div class="run-title">
        <h1>{session.title || session.name || session.id}</h1>
        <p>
          {session.status === 'damaged' ? (
            <span class="pill tone-bad">damaged</span>
          ) : (
            <StatePill state={view.verdict.state} isAsleep={rows.at(-1)?.wakeAt !== undefined} />
          )}
          <span>
            {row === rows.at(-1) ? '' : 'playhead '}
            {row.step === 0 || !step
              ? 'before the first step'
              : `at step ${step.step}${step.isAnswered ? '' : ', not answered'}`}
            {row.run > 1 ? `, run ${row.run}` : ''}
          </span>
          {children}
          {models !== '' && <span class="run-model">{models}</span>}
          {session.forkedFrom && (
            <a href={compareAddress(session.forkedFrom.sessionId, id)}>
              Fork at record {session.forkedFrom.seq}: compare
            </a>
          )}
          {forks.length > 0 && <span>Compare with fork</span>}
          {forks
            .map(({ sessionId }, index) => (
              <a key={sessionId} href={compareAddress(id, sessionId)}>
                {index + 1}
              </a>
            ))
            .slice(-4)}
        </p>
      </div>
      <div class="run-now">
        <span class="now-label">{row.label}</span>
        <span class="now-path">{formatStatePath(row.to)}</span>
      </div>
      {onFork && (
        <button title="Change a part, and run it again in a fork" onClick={onFork}>
          <Icon name="fork" /> What if
        </button>
      )}
      {readOnly !== null && <p class="no-fork">{readOnly}</p>}
    </div>
  )
}

export function mayResume({ session }: SessionView): boolean {
  return session.state === 'PAUSED' || session.status === 'interrupted'
}

export function StatePill({ state, isAsleep }: { state: string | null; isAsleep: boolean }) {
  const word = isAsleep ? 'sleeping' : formatWord(state ?? 'not started').toLowerCase()
  return <span class={`pill tone-${getTone(state)}`}>{word}</span>
}

/** The state in a list. The states of machines keep the names in their charts. */
export function RowPill({ row: { status, value, state } }: { row: SessionRow }) {
  if (status === 'damaged') return <span class="pill tone-bad">damaged</span>
  if (value === null) return <StatePill state={state} isAsleep={status === 'sleeping'} />
  const tone = status === 'running' ? 'busy' : state === null ? 'wait' : getTone(state)
  return <span class={`pill tone-${tone}`}>{value}</span>
}

interface VerdictProps {
  view: SessionView
  steps: readonly RunStep[]
  now: number | undefined
  onFork: ((seq: number) => void) | null
  onShare: (() => Promise<void>) | null
  otherAgent: string | null
  onResume: (() => Promise<void>) | null
  onPlace: (place: number) => void
  onTab: (tab: ChipTab) => void
}

type ChipTab = 'cost' | 'guards' | 'transcript'

export function VerdictStrip(props: VerdictProps) {
  const { view, steps, now, onFork, onShare, otherAgent, onResume, onPlace, onTab } = props
  const { verdict, rows, session } = view
  const [trouble, setTrouble] = useState('')
  const decided = rows.findIndex(({ seq }) => seq === verdict.seq)
  const tone = session.status === 'damaged' ? 'bad' : getTone(verdict.state)
  const isAsleep = rows.at(-1)?.wakeAt !== undefined
  const hasStopped = tone !== 'busy' && session.status !== 'damaged'
  const attempt = (act: () => Promise<void>): void => {
    setTrouble('')
    act().catch((error: unknown) => setTrouble(formatError(error)))
  }
  return (
    <section class={`verdict tone-${tone}`} aria-label="Verdict">
      <div class="verdict-line">
        <Icon name={isAsleep ? 'time' : (iconsByState[verdict.state ?? ''] ?? icons[tone])} size={20} />
        <p class="verdict-text">
          {markKeys(describeStatus(view))} {verdict.answer !== '' && <q>{verdict.answer}</q>}
        </p>
        <div class="verdict-buttons">
          {decided !== -1 && (
            <button
              class="quiet-button"
              onClick={() => {
                onPlace(decided)
                showTabs()
              }}
            >
              Record {verdict.seq}
            </button>
          )}
          {onFork && hasStopped && verdict.seq > 1 && (
            <button class="quiet-button" onClick={() => onFork(verdict.seq - 1)}>
              Change something before this
            </button>
          )}
          {onShare && (
            <button class="quiet-button" onClick={() => attempt(onShare)}>
              Share
            </button>
          )}
          {onResume && (
            <button class="primary" onClick={() => attempt(onResume)}>
              {isAsleep ? 'Wake it now' : 'Resume'}
            </button>
          )}
        </div>
      </div>
      {onResume && otherAgent !== null && <p class="other-agent">{otherAgent}</p>}
      <Refusal text={trouble} />
      {/* The end of a log does not contain the totals. */}
      {view.isPart ? (
        <p class="chips">Reading all {formatCount(view.rows.length, 'record')} …</p>
      ) : (
        <Chips view={view} steps={steps} now={now} onPlace={onPlace} onTab={onTab} />
      )}
    </section>
  )
}

const iconsByState: Record<string, IconName> = { TIMED_OUT: 'time', MAX_STEPS: 'steps' }

const icons: Record<Tone, IconName> = {
  good: 'ok',
  limit: 'budget',
  bad: 'error',
  wait: 'pause',
  off: 'halt',
  busy: 'resume',
}

function describeStatus({ verdict, session }: SessionView): string {
  if (session.problem !== null) return `Damaged: ${session.problem}`
  if (verdict.text === '') return 'No run yet.'
  if (session.status !== 'interrupted') return verdict.text
  return `Its process ended during the run, and no other process has resumed it. ${verdict.text}`
}

/** Formats keys and calls as code, such as `guardrails.progress.stale.haltAt` or `agent.fork('s', 2)`. */
function markKeys(text: string) {
  return text
    .split(/(\b[a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+\b(?:\([^()]*\))?)/)
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))
}

function Chips({
  view,
  steps,
  now,
  ...actions
}: Pick<VerdictProps, 'view' | 'steps' | 'now' | 'onPlace' | 'onTab'>) {
  const { rows, bars, verdict, session } = view
  const { inherited } = session
  // The slider moves often and does not change the chips.
  const chips = useMemo(
    () => listChips({ rows, bars, verdict, inherited }, steps, now),
    [rows, bars, verdict, inherited?.tokens, steps],
  )
  return (
    <div class="chips" role="group" aria-label="Usage and duration">
      {chips.map((chip) => (
        <Chip key={chip.name} {...chip} {...actions} />
      ))}
    </div>
  )
}

function listChips(
  {
    rows,
    bars,
    verdict,
    inherited,
  }: Pick<SessionView, 'rows' | 'bars' | 'verdict'> & Pick<SessionRow, 'inherited'>,
  steps: readonly RunStep[],
  now: number | undefined,
): Omit<ChipProps, 'onPlace' | 'onTab'>[] {
  const placesWith = (isMeant: (row: RecordRow) => boolean): number[] =>
    rows.flatMap((row, place) => (isMeant(row) ? [place] : []))
  const flagged = (flag: RecordRow['flags'][number]): number[] =>
    placesWith(({ flags }) => flags.includes(flag))
  const { inputTokens, cachedTokens } = verdict
  const failures = rows.flatMap(({ calls }) => calls.filter(isFailed))
  const retries = flagged('retry')
  const guards = (
    [
      ['halt', 'halt'],
      ['block', 'refusal'],
      ['nudge', 'nudge'],
    ] as const
  ).map(([flag, word]) => ({ places: flagged(flag), word }))
  const acted = guards.flatMap(({ places: { length }, word }) =>
    length > 0 ? [formatCount(length, word)] : [],
  )
  return [
    {
      name: 'time',
      icon: 'time',
      title: 'the longest steps',
      places: steps
        .filter(({ ms }) => ms > 0)
        .toSorted((a, b) => b.ms - a.ms)
        .map(({ place }) => place),
      children: <Times shares={shareTime({ rows, bars }, now)} />,
    },
    {
      name: 'steps',
      icon: 'steps',
      title: 'the steps',
      places: steps.map(({ place }) => place),
      children: (
        <strong>
          {formatCount(verdict.steps, 'step')}
          {verdict.state === 'ERROR' && ' answered'}
        </strong>
      ),
    },
    {
      name: 'tokens',
      children: (
        <>
          <strong>{formatShort(rows.at(-1)?.tokens ?? 0)}</strong> tokens,{' '}
          {getCachedPercent({ inputTokens, cachedInputTokens: cachedTokens })}% cached
          {inherited && `, plus ${formatShort(inherited.tokens)} from the original`}
        </>
      ),
    },
    {
      name: 'cost',
      icon: 'budget',
      children: (
        <>
          <Cost verdict={verdict} />
          {inherited && `, plus ${formatMoney(inherited.cost)} from the original`}
        </>
      ),
    },
    ...[
      {
        name: 'failed',
        icon: 'error' as const,
        title: 'the failed calls',
        tab: 'transcript' as const,
        places: placesWith(({ calls }) => calls.some(isFailed)),
        children: (
          <strong>
            {formatCount(failures.length, 'failed call')}
            {failures.length === 1 && `: ${failures[0]?.name ?? ''}`}
          </strong>
        ),
      },
      {
        name: 'retries',
        icon: 'retry' as const,
        title: 'the failed requests',
        places: retries,
        children: <strong>{formatCount(retries.length, 'retry', 'retries')}</strong>,
      },
      {
        name: 'guards',
        icon: 'block' as const,
        title: 'the guard actions',
        tab: 'guards' as const,
        places: guards.flatMap(({ places }) => places),
        children: (
          <>
            <strong>Guards</strong> {acted.join(', ')}
          </>
        ),
      },
    ].filter(({ places }) => places.length > 0),
  ]
}

function Times({ shares }: { shares: TimeShares }) {
  const parts =
    shares.total > 0 ? Object.entries(toPercents(shares)).filter(([, percent]) => percent > 0) : []
  return (
    <>
      <strong>{formatDuration(shares.total)}</strong>{' '}
      <span class="shares" aria-hidden="true">
        {parts.map(([name, percent]) => (
          <i key={name} class={`share-${name}`} style={{ width: `${percent}%` }} />
        ))}
      </span>
      {parts.map(([name, percent]) => `${name} ${percent}%`).join(' · ')}
    </>
  )
}

function Cost({ verdict: { cost } }: { verdict: VerdictView }) {
  if (cost.usd === 0 && !cost.isWhole) return <>cost unknown (no prices)</>
  return (
    <>
      <strong>{formatCost(cost)}</strong> cost{cost.isWhole ? '' : ', excluding unpriced usage'}
    </>
  )
}

interface ChipProps {
  name: string
  icon?: IconName
  /** The records that the chip links to. Without records, it opens the costs. */
  places?: readonly number[]
  title?: string
  /** The tab that shows the chip's records. */
  tab?: ChipTab
  onPlace: (place: number) => void
  onTab: (tab: ChipTab) => void
  children: ComponentChildren
}

function Chip({ name, icon, places, title, tab, onPlace, onTab, children }: ChipProps) {
  const at = useRef(-1)
  const go = (): void => {
    if (places) {
      at.current = (at.current + 1) % places.length
      onPlace(places[at.current] ?? 0)
    }
    const shown = places ? tab : 'cost'
    if (shown) onTab(shown)
    showTabs()
  }
  return (
    <button
      class={`chip-button chip-${name}`}
      title={places ? `Step through ${title}` : 'Show the costs'}
      disabled={places?.length === 0}
      onClick={go}
    >
      {icon && <Icon name={icon} size={14} />}
      <span>{children}</span>
    </button>
  )
}

import type { ComponentChildren } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { formatCount, formatDuration, formatMoney, getCachedPercent } from '../../core/format/format-words.js'
import { formatCost } from '../costs.js'
import type { RecordRow, SessionRow, SessionView } from '../protocol.js'
import { isFailed } from '../session-query.js'
import {
  formatShort,
  formatStatePath,
  formatWord,
  getSessionTone,
  type Tone,
  compareAddress,
} from '../format.js'
import { Icon, type IconName } from './icons.js'
import { Refusal, useAttempt } from './loading.js'
import { showTabs } from './run-hooks.js'
import type { RunPage, Tab } from './run-page.js'
import { StepMarks } from './step-marks.js'
import { listModels, type RunStep, shareTime, type TimeShares, toPercents } from '../run-steps.js'

export function RunHead({ run }: { run: RunPage }) {
  const { source, view, row, step, canAct } = run
  const { session, forks, rows, readOnly } = view
  const { id } = session
  const models = useMemo(() => listModels(rows, session.models), [rows, session.models])
  return (
    <div class="run-head">
      <div class="run-title">
        <h1>{session.title || session.name || session.id}</h1>
        <p>
          <StatePill session={session} />
          <span>
            {row === rows.at(-1) ? '' : 'playhead '}
            {row.step === 0 || !step
              ? 'before the first step'
              : `at step ${step.step}${step.isAnswered ? '' : ', not answered'}`}
            {row.run > 1 ? `, run ${row.run}` : ''}
          </span>
          {step && (canAct || (session.isAttached && !source.isFile)) && <StepMarks run={run} step={step} />}
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
      {canAct && (
        <button title="Change a part, and run it again in a fork" onClick={() => run.openFork(null)}>
          <Icon name="fork" /> What if
        </button>
      )}
      {readOnly !== null && !source.isFile && <p class="no-fork">{readOnly}</p>}
    </div>
  )
}

/** The states of machines keep the names in their charts. */
export function StatePill({ session }: { session: SessionRow }) {
  const { status, value, state } = session
  const isShownAsStatus = status === 'damaged' || (status === 'sleeping' && value === null)
  const word = isShownAsStatus ? status : (value ?? formatWord(state ?? 'not started').toLowerCase())
  return <span class={`pill tone-${getSessionTone(session)}`}>{word}</span>
}

export function VerdictStrip({ run }: { run: RunPage }) {
  const { source, view, canAct, hasResume } = run
  const { verdict, rows, session, otherAgent } = view
  const { trouble, attempt } = useAttempt()
  const decided = rows.findIndex(({ seq }) => seq === verdict.seq)
  const tone = getSessionTone(session)
  const isAsleep = session.status === 'sleeping'
  const hasStopped = tone !== 'busy' && session.status !== 'damaged'
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
                run.go(decided)
                showTabs()
              }}
            >
              Record {verdict.seq}
            </button>
          )}
          {canAct && hasStopped && verdict.seq > 1 && (
            <button class="quiet-button" onClick={() => run.openFork(null, verdict.seq - 1)}>
              Change something before this
            </button>
          )}
          {!source.isFile && (
            <button class="quiet-button" onClick={() => attempt(run.share)}>
              Share
            </button>
          )}
          {hasResume && (
            <button class="primary" onClick={() => attempt(() => run.answer({ type: 'resume' }))}>
              {isAsleep ? 'Wake it now' : 'Resume'}
            </button>
          )}
        </div>
      </div>
      {hasResume && run.isOwn && otherAgent !== null && <p class="other-agent">{otherAgent}</p>}
      <Refusal text={trouble} />
      {/* The end of a log does not contain the totals. */}
      {view.isPart ? (
        <p class="chips">Reading all {formatCount(view.rows.length, 'record')} …</p>
      ) : (
        <Chips run={run} />
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

function Chips({ run }: { run: RunPage }) {
  const { view, steps, now } = run
  const { rows, bars, verdict, session } = view
  // The slider moves often and does not change the chips.
  const chips = useMemo(
    () => listChips(view, steps, now),
    [rows, bars, verdict, session.inherited?.tokens, steps],
  )
  return (
    <div class="chips" role="group" aria-label="Usage and duration">
      {chips.map((chip) => (
        <Chip key={chip.name} {...chip} run={run} />
      ))}
    </div>
  )
}

function listChips(
  { rows, bars, verdict, session: { inherited } }: SessionView,
  steps: readonly RunStep[],
  now: number | undefined,
): ShownChip[] {
  const { inputTokens, cachedTokens: cachedInputTokens, cost } = verdict
  const placesWith = (isMeant: (row: RecordRow) => boolean): number[] =>
    rows.flatMap((row, place) => (isMeant(row) ? [place] : []))
  const flagged = (flag: RecordRow['flags'][number]): number[] =>
    placesWith(({ flags }) => flags.includes(flag))
  const failures = rows.flatMap(({ calls }) => calls.filter(isFailed))
  const retries = flagged('retry')
  const [halts, refusals, nudges] = [flagged('halt'), flagged('block'), flagged('nudge')]
  const acted = Object.entries({ halt: halts, refusal: refusals, nudge: nudges }).flatMap(([word, places]) =>
    places.length > 0 ? [formatCount(places.length, word)] : [],
  )
  const shares = shareTime({ rows, bars }, now)
  const plus = (value: string): string => (inherited ? `, plus ${value} from the original` : '')
  const isUnknown = cost.usd === 0 && !cost.isWhole
  const troubles: ShownChip[] = [
    {
      name: 'failed',
      icon: 'error',
      title: 'the failed calls',
      tab: 'transcript',
      places: placesWith(({ calls }) => calls.some(isFailed)),
      strong: `${formatCount(failures.length, 'failed call')}${failures.length === 1 ? `: ${failures[0]?.name}` : ''}`,
    },
    {
      name: 'retries',
      icon: 'retry',
      title: 'the failed requests',
      places: retries,
      strong: formatCount(retries.length, 'retry', 'retries'),
    },
    {
      name: 'guards',
      icon: 'block',
      title: 'the guard actions',
      tab: 'guards',
      places: [...halts, ...refusals, ...nudges],
      strong: 'Guards',
      rest: acted.join(', '),
    },
  ]
  return [
    {
      name: 'time',
      icon: 'time',
      title: 'the longest steps',
      places: steps
        .filter(({ ms }) => ms > 0)
        .toSorted((a, b) => b.ms - a.ms)
        .map(({ place }) => place),
      strong: formatDuration(shares.total),
      rest: <Shares shares={shares} />,
    },
    {
      name: 'steps',
      icon: 'steps',
      title: 'the steps',
      places: steps.map(({ place }) => place),
      strong: `${formatCount(verdict.steps, 'step')}${verdict.state === 'ERROR' ? ' answered' : ''}`,
    },
    {
      name: 'tokens',
      strong: formatShort(rows.at(-1)?.tokens ?? 0),
      rest: `tokens, ${getCachedPercent({ inputTokens, cachedInputTokens })}% cached${plus(formatShort(inherited?.tokens ?? 0))}`,
    },
    {
      name: 'cost',
      icon: 'budget',
      strong: isUnknown ? '' : formatCost(cost),
      rest: `${isUnknown ? 'cost unknown (no prices)' : `cost${cost.isWhole ? '' : ', excluding unpriced usage'}`}${plus(formatMoney(inherited?.cost ?? null))}`,
    },
    ...troubles.filter(({ places }) => places?.length),
  ]
}

function Shares({ shares }: { shares: TimeShares }) {
  const parts =
    shares.total > 0 ? Object.entries(toPercents(shares)).filter(([, percent]) => percent > 0) : []
  return (
    <>
      <span class="shares" aria-hidden="true">
        {parts.map(([name, percent]) => (
          <i key={name} class={`share-${name}`} style={{ width: `${percent}%` }} />
        ))}
      </span>
      {parts.map(([name, percent]) => `${name} ${percent}%`).join(' · ')}
    </>
  )
}

interface ShownChip {
  name: string
  icon?: IconName
  /** The records that the chip links to. Without records, it opens the costs. */
  places?: readonly number[]
  title?: string
  /** The tab that shows the chip's records. */
  tab?: Tab
  strong: string
  rest?: ComponentChildren
}

function Chip({ name, icon, places, title, tab, strong, rest, run }: ShownChip & { run: RunPage }) {
  const at = useRef(-1)
  const go = (): void => {
    if (places) {
      at.current = (at.current + 1) % places.length
      run.go(places[at.current] ?? 0)
    }
    const shown = places ? tab : 'cost'
    if (shown) run.showTab(shown)
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
      <span>
        {strong !== '' && <strong>{strong}</strong>}
        {strong !== '' && rest !== undefined && ' '}
        {rest}
      </span>
    </button>
  )
}

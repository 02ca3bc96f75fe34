import type { ComponentChildren } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import type { RecordRow, SessionView } from '../protocol.js'
import { formatCount, formatDuration, formatMoney, formatShort, getTone, showControls } from './format.js'
import { Icon, type IconName } from './icons.js'
import { showOnSmallScreen } from './run-hooks.js'
import { isFailed, shareTime, type RunStep } from './run-steps.js'

interface VerdictProps {
  view: SessionView
  steps: readonly RunStep[]
  /** Null when forks are not possible. */
  onFork: ((seq: number) => void) | null
  /** Null in a file, which is shared as it is. */
  onShare: (() => Promise<void>) | null
  /** Null when there is nothing to resume. */
  onResume: (() => Promise<void>) | null
  onPlace: (place: number) => void
}

/** What stopped the session, in a sentence, and what it took: each part leads to its records, one after the other. */
export function VerdictStrip({ view, steps, onFork, onShare, onResume, onPlace }: VerdictProps) {
  const { verdict, rows, session } = view
  const [trouble, setTrouble] = useState('')
  const decided = rows.findIndex(({ seq }) => seq === verdict.seq)
  const tone = session.standing === 'damaged' ? 'bad' : getTone(verdict.state)
  const isAsleep = rows.at(-1)?.wakeAt !== undefined
  const hasStopped = tone !== 'busy' && session.standing !== 'damaged'
  const attempt = (act: () => Promise<void>): void => {
    setTrouble('')
    act().catch((error: unknown) => setTrouble(error instanceof Error ? error.message : String(error)))
  }
  return (
    <section class={`verdict tone-${tone}`} aria-label="Verdict">
      <div class="verdict-line">
        <Icon name={isAsleep ? 'time' : (iconsByState[verdict.state ?? ''] ?? icons[tone])} size={20} />
        <p class="verdict-text">{markKeys(describeStanding(view))}</p>
        <div class="verdict-buttons">
          {decided !== -1 && (
            <button
              type="button"
              class="quiet-button"
              onClick={() => {
                onPlace(decided)
                showOnSmallScreen('.side')
              }}
            >
              Record {verdict.seq}
            </button>
          )}
          {onFork && hasStopped && verdict.seq > 1 && (
            <button type="button" class="quiet-button" onClick={() => onFork(verdict.seq - 1)}>
              Fork before it
            </button>
          )}
          {onShare && (
            <button type="button" class="quiet-button" onClick={() => attempt(onShare)}>
              Share
            </button>
          )}
          {onResume && (
            <button type="button" class="primary" onClick={() => attempt(onResume)}>
              {isAsleep ? 'Wake it now' : 'Resume'}
            </button>
          )}
        </div>
      </div>
      {trouble !== '' && (
        <p class="refusal" role="alert">
          {trouble}
        </p>
      )}
      <Chips view={view} steps={steps} onPlace={onPlace} />
    </section>
  )
}

/** Of the limits, money alone has the sign of money. */
const iconsByState: Record<string, IconName> = { TIMED_OUT: 'time', MAX_STEPS: 'steps' }

const icons: Record<ReturnType<typeof getTone>, IconName> = {
  good: 'ok',
  limit: 'budget',
  bad: 'error',
  wait: 'pause',
  off: 'halt',
  busy: 'resume',
}

function describeStanding({ verdict, session }: SessionView): string {
  if (session.problem !== null) return `Damaged: ${session.problem}`
  if (verdict.text === '') return 'No run has begun yet.'
  if (session.standing !== 'interrupted') return verdict.text
  return `Its process ended while it was at work, and none goes on with it. ${verdict.text}`
}

/** Keys of the configuration as code: `guardrails.progress.stale.haltAt`. */
function markKeys(text: string) {
  return text
    .split(/(\b[a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+\b)/)
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))
}

function Chips({ view, steps, onPlace }: Pick<VerdictProps, 'view' | 'steps' | 'onPlace'>) {
  const { rows, bars, verdict } = view
  // The slider moves often, and changes none of it.
  const sums = useMemo(() => sumUp({ rows, bars }, steps), [rows, bars, steps])
  const { time, places, failures, retries, guards } = sums
  const toPercent = (ms: number): number => (time.total > 0 ? Math.round((ms / time.total) * 100) : 0)
  const share = (ms: number): string => `${toPercent(ms)} %`
  const cached = verdict.inputTokens > 0 ? Math.round((verdict.cachedTokens / verdict.inputTokens) * 100) : 0
  return (
    <div class="chips" role="group" aria-label="What it took">
      <Chip name="time" icon="time" places={places.time} onPlace={onPlace} title="the longest steps">
        <strong>{formatDuration(time.total)}</strong>{' '}
        <span class="shares" aria-hidden="true">
          <i class="share-model" style={{ width: `${toPercent(time.model)}%` }} />
          <i class="share-tools" style={{ width: `${toPercent(time.tools)}%` }} />
          <i class="share-waits" style={{ width: `${toPercent(time.waits)}%` }} />
        </span>
        model {share(time.model)} · tools {share(time.tools)} · waits {share(time.waits)}
      </Chip>
      <Chip name="steps" icon="steps" places={places.steps} onPlace={onPlace} title="the steps">
        <strong>{formatCount(sums.steps, 'step')}</strong>
      </Chip>
      <Chip
        name="tokens"
        places={places.tokens}
        onPlace={onPlace}
        title="the steps with most tokens"
        isInSteps
      >
        <strong>{formatShort(rows.at(-1)?.tokens ?? 0)}</strong> tokens, {cached} % cached
      </Chip>
      <Chip name="cost" places={places.cost} onPlace={onPlace} title="the dearest steps" isInSteps>
        <strong>
          {verdict.isCostWhole ? '' : '≥ '}
          {formatMoney(verdict.cost)}
        </strong>
        {!verdict.isCostWhole && ' (a part has no price)'}
      </Chip>
      {failures.length > 0 && (
        <Chip name="failed" icon="error" places={places.failed} onPlace={onPlace} title="the failed calls">
          <strong>
            {formatCount(failures.length, 'failed call')}
            {failures.length === 1 && `: ${showControls(failures[0]?.name ?? '')}`}
          </strong>
        </Chip>
      )}
      {retries > 0 && (
        <Chip
          name="retries"
          icon="retry"
          places={places.retries}
          onPlace={onPlace}
          title="the failed requests"
        >
          <strong>{formatCount(retries, 'retry', 'retries')}</strong>
        </Chip>
      )}
      {guards.length > 0 && (
        <Chip name="guards" icon="block" places={places.guards} onPlace={onPlace} title="what guards did">
          <strong>Guards</strong> {guards.join(', ')}
        </Chip>
      )}
    </div>
  )
}

/** What the session took, and the records that each part leads to. */
function sumUp({ rows, bars }: Pick<SessionView, 'rows' | 'bars'>, steps: readonly RunStep[]) {
  const by = (measure: (step: RunStep) => number): number[] =>
    steps
      .filter((step) => measure(step) > 0)
      .toSorted((a, b) => measure(b) - measure(a))
      .map(({ place }) => place)
  const placesWith = (isMeant: (row: RecordRow) => boolean): number[] =>
    rows.flatMap((row, place) => (isMeant(row) ? [place] : []))
  const [halts, blocks, nudges] = [
    placesWith(isOf('halt')),
    placesWith(isOf('block')),
    placesWith(isOf('nudge')),
  ]
  const retries = placesWith(isOf('retry'))
  const counted: [places: readonly number[], word: string][] = [
    [halts, 'halt'],
    [blocks, 'refusal'],
    [nudges, 'nudge'],
  ]
  return {
    time: shareTime({ rows, bars }),
    steps: steps.filter(({ tokens, calls }) => tokens > 0 || calls.length > 0).length,
    failures: rows.flatMap(({ calls }) => calls.filter(isFailed)),
    retries: retries.length,
    guards: counted.flatMap(([{ length }, word]) => (length > 0 ? [formatCount(length, word)] : [])),
    places: {
      time: by(({ ms }) => ms),
      steps: steps.map(({ place }) => place),
      tokens: by(({ tokens }) => tokens),
      cost: by(({ cost }) => cost),
      failed: placesWith(({ calls }) => calls.some(isFailed)),
      retries,
      guards: [...halts, ...blocks, ...nudges],
    },
  }
}

const isOf =
  (flag: RecordRow['flags'][number]) =>
  ({ flags }: RecordRow): boolean =>
    flags.includes(flag)

interface ChipProps {
  name: string
  icon?: IconName
  /** The records that it leads to, in this order. */
  places: readonly number[]
  title: string
  /** Whether the list of steps has what is looked for, such as tokens; else the transcript has it. */
  isInSteps?: boolean
  onPlace: (place: number) => void
  children: ComponentChildren
}

function Chip({ name, icon, places, title, isInSteps = false, onPlace, children }: ChipProps) {
  const at = useRef(-1)
  const go = (): void => {
    at.current = (at.current + 1) % places.length
    const place = places[at.current]
    if (place === undefined) return
    onPlace(place)
    showOnSmallScreen(isInSteps ? '.steps' : '.side')
  }
  return (
    <button
      type="button"
      class={`chip-button chip-${name}`}
      title={`Go to ${title}, one after the other`}
      disabled={places.length === 0}
      onClick={go}
    >
      {icon && <Icon name={icon} size={14} />}
      <span>{children}</span>
    </button>
  )
}

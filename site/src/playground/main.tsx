import { render } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import type { Chart } from './chart.tsx'
import { type Draft, examples } from './examples.ts'
import type * as loopModule from './loop.ts'
import type { Endpoint, Faults, ForkEdit, Play } from './play.ts'
import { ScriptPane } from './script-pane.tsx'
import { LinkError, readLink, writeLink } from './share-link.ts'

const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
const pace = isStill ? { answer: 0, piece: 0 } : { answer: 450, piece: 25 }
/** The duration of a token's move to the next state. */
const walkMs = isStill ? 0 : 320
const [firstExample] = examples
const scriptContinues = 'The script continues unchanged, even if the tool returned something else.'

type Loop = typeof loopModule

const noFaults: Faults = { script: [], settings: [] }

let plays = 0

interface PlaygroundProps {
  /** The element that contains the playground. */
  root: Element
  /** The chart from the static page. */
  still: Element | null
  shared: Draft | null
  /** The error in the link. */
  problem: string
}

function Playground({ root, still, shared, problem }: PlaygroundProps) {
  const [draft, setDraft] = useState<Draft>(shared ?? (firstExample as Draft))
  const [endpoint, setEndpoint] = useState<Endpoint | null>(null)
  const [sessions, setSessions] = useState<Play[]>([])
  const [chosen, setChosen] = useState(0)
  /** The selected record. Null selects the last record. */
  const [picked, setPicked] = useState<number | null>(null)
  const [tab, setTab] = useState<'transcript' | 'records' | 'guards' | 'output' | 'typescript'>('transcript')
  const [note, setNote] = useState(problem)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const [isStarting, setStarting] = useState(false)
  const { loop, load } = useLoop(root, shared !== null)
  const checked = useMemo(() => loop?.checkDraft(draft), [loop, draft])
  const faults = checked?.faults ?? noFaults

  const play = sessions[chosen] ?? null
  const rows = play?.fold.rows ?? []
  const place = picked ?? rows.at(-1)?.seq ?? 0
  const row = rows.find(({ seq }) => seq === place) ?? null
  const view = play !== null && place > 0 ? play.view(place) : null
  const isLast = picked === null || picked === rows.at(-1)?.seq

  const open = (next: Play): void => {
    setSessions((before) => [...before.slice(-7), next])
    setChosen(Math.min(sessions.length, 7))
    setPicked(null)
    setNote('')
  }
  const start = async (): Promise<void> => {
    setStarting(true)
    try {
      const { Play, checkDraft } = await load()
      const { prepared } = checkDraft(draft)
      if (prepared === null) return
      plays += 1
      const next = new Play(`Run ${plays}`, `run-${plays}`, { ...prepared, endpoint, pace, start: 0 }, () =>
        redraw(0),
      )
      open(next)
      next.start(draft.input)
    } catch (error) {
      setNote(error instanceof Error ? error.message : String(error))
    } finally {
      setStarting(false)
    }
  }
  const share = async (): Promise<void> => {
    try {
      const link = await writeLink(draft)
      history.replaceState(null, '', `#${link}`)
      await navigator.clipboard?.writeText(location.href).catch(() => undefined)
      setNote(
        'The link is in the address bar and, if your browser allows it, on the clipboard. It contains the script and the settings, but not your API key.',
      )
    } catch (error) {
      setNote(error instanceof LinkError ? error.message : 'This browser cannot create the link.')
    }
  }
  const edit = async (change: ForkEdit): Promise<void> => {
    if (play === null) return
    plays += 1
    try {
      const next = await play.fork(place, change, `What if ${plays}`)
      if (next.isScripted && 'call' in change) next.hint = `${next.hint} ${scriptContinues}`.trim()
      open(next)
    } catch (error) {
      setNote(error instanceof Error ? error.message : String(error))
    }
  }
  const program = checked?.prepared && loop ? loop.writeProgram(draft, endpoint) : null
  /** Why Play is disabled. */
  const mistake = [
    ...faults.script.map(({ line }) => `line ${line} of the script`),
    ...faults.settings.map(({ line }) => `line ${line} of the settings`),
  ][0]
  const look = async (text: string): Promise<void> => {
    try {
      const { Play, readLog } = await load()
      const records = readLog(text)
      plays += 1
      const next = new Play(`Log ${plays}`, `log-${plays}`, null, () => redraw(0))
      await next.show(records)
      if (next.fold.rows.length === 0) throw new Error(next.problem ?? 'This log has no records.')
      open(next)
    } catch (error) {
      setNote(error instanceof Error ? error.message : String(error))
    }
  }

  return (
    <div class="playground">
      <div class="bar">
        <button
          type="button"
          class="main"
          disabled={checked?.prepared === null || isStarting || play?.isRunning}
          onClick={() => void start()}
        >
          Play
        </button>
        <button type="button" disabled={!play?.isRunning} onClick={() => play?.cancel()}>
          Cancel
        </button>
        <button type="button" onClick={() => void share()}>
          Share
        </button>
        <LogField onLog={(text) => void look(text)} />
        <p class="note" role="status">
          {isStarting && loop === null
            ? 'Loading the loop …'
            : mistake
              ? `Fix ${mistake} to play.`
              : note || play?.problem || play?.hint}
        </p>
      </div>
      <ScriptPane
        draft={draft}
        faults={faults}
        endpoint={endpoint}
        loop={loop}
        onDraft={(change) => setDraft((before) => ({ ...before, ...change }))}
        onEndpoint={setEndpoint}
      />
      <section class="stage" aria-label="The run on the chart">
        {sessions.length > 1 && (
          <div class="segments" role="group" aria-label="Sessions">
            {sessions.map((one, at) => (
              <button
                key={one.title}
                type="button"
                aria-pressed={at === chosen}
                onClick={() => {
                  setChosen(at)
                  setPicked(null)
                }}
              >
                {one.title}
              </button>
            ))}
          </div>
        )}
        <p class="where">
          <strong>{row === null ? 'No run yet' : row.label}</strong>
          <span>{row?.to.join(', ').replaceAll('.', ' › ')}</span>
        </p>
        <LoadedChart row={row} ms={walkMs} still={still} isNeeded={loop !== null} />
        <label class="slider">
          {rows.length === 0
            ? 'Each step of a run is a record. Drag to see an earlier record.'
            : `Record ${place} of ${rows.length}. Drag to see another record.`}
          <input
            type="range"
            min={1}
            max={Math.max(1, rows.length)}
            value={Math.max(1, place)}
            disabled={rows.length === 0}
            onInput={({ currentTarget }) => setPicked(Number(currentTarget.value))}
          />
        </label>
        {play?.isOurs && isLast && view !== null && !play.isRunning && (
          <Answers play={play} view={view} state={row?.state ?? ''} />
        )}
      </section>
      <section class="told" aria-label="Results">
        <div class="segments" role="group" aria-label="View">
          {(['transcript', 'records', 'guards', 'output', 'typescript'] as const).map((one) => (
            <button key={one} type="button" aria-pressed={tab === one} onClick={() => setTab(one)}>
              {one === 'typescript' ? 'TypeScript' : `${one[0]?.toUpperCase()}${one.slice(1)}`}
            </button>
          ))}
        </div>
        <div class="shown" tabIndex={0} role="region" aria-label={tab}>
          {(loop === null || rows.length === 0) && tab !== 'output' && tab !== 'typescript' && (
            <p class="empty">{emptyTabs[tab]}</p>
          )}
          {loop !== null && rows.length > 0 && (
            <>
              {tab === 'transcript' && (
                <loop.Transcript
                  view={view}
                  onEdit={play?.isOurs && !play.isRunning ? (change) => void edit(change) : undefined}
                />
              )}
              {tab === 'records' && <loop.Records rows={rows} place={place} onPlace={setPicked} />}
              {tab === 'guards' && <loop.Guards view={view} />}
            </>
          )}
          {tab === 'typescript' && <Program text={program} />}
          {tab === 'output' && (
            <pre class="output">{play?.output || 'Press Play to see the output of the CLI.'}</pre>
          )}
        </div>
      </section>
    </div>
  )
}

/** The run as a program. Null while the script or the settings have errors, or before the loop has loaded. */
function Program({ text }: { text: string | null }) {
  const [isCopied, setCopied] = useState(false)
  if (text === null)
    return <p class="empty">The program appears here when the script and the settings are valid.</p>
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
  }
  return (
    <>
      <button type="button" onClick={() => void copy().catch(() => setCopied(false))}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
      <pre class="output">{text}</pre>
    </>
  )
}

/** The text before the first run. */
const emptyTabs = {
  transcript:
    'Press Play to start the conversation. Afterwards, use “What if…” to run it again with a different message or tool result.',
  records: 'No records yet.',
  guards: 'No guard counts yet.',
}

/** The loop. It loads when the reader first uses the playground, by pointer, by key, or by a link with a script. */
function useLoop(root: Element, isWanted: boolean): { loop: Loop | null; load: () => Promise<Loop> } {
  const [loop, setLoop] = useState<Loop | null>(null)
  const loading = useRef<Promise<Loop> | null>(null)
  const load = (): Promise<Loop> => {
    loading.current ??= import('./loop.ts').then(
      (loaded) => {
        setLoop(loaded)
        return loaded
      },
      () => {
        loading.current = null
        throw new Error('The loop could not be loaded. Check your connection and reload the page.')
      },
    )
    return loading.current
  }
  useEffect(() => {
    // A load error appears when the reader presses Play.
    const preload = (): void => void load().catch(() => {})
    if (isWanted) return preload()
    const types = ['pointerover', 'pointerdown', 'focusin']
    for (const type of types) root.addEventListener(type, preload, { passive: true })
    return () => {
      for (const type of types) root.removeEventListener(type, preload)
    }
  }, [])
  return { loop, load }
}

type LoadedChartProps = Omit<Parameters<typeof Chart>[0], 'svg'> & {
  still: Element | null
  /** Whether states can be highlighted. Until then the static chart is shown. */
  isNeeded: boolean
}

/** The chart. Highlighting works after its code has loaded. */
function LoadedChart({ still, isNeeded, ...props }: LoadedChartProps) {
  const [loaded, setLoaded] = useState<{ Chart: typeof Chart } | null>(null)
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (still) box.current?.replaceChildren(still)
  }, [])
  const svg = useMemo(() => (still === null ? '' : readPicture(still)), [])
  useEffect(() => {
    if (!isNeeded) return
    import('./chart.tsx').then(
      (chart) => setTimeout(() => setLoaded(chart)),
      // If loading fails, the chart stays static.
      () => {},
    )
  }, [isNeeded])
  if (loaded === null)
    return <div class="picture" ref={box} tabIndex={0} role="region" aria-label="The chart" />
  return <loaded.Chart key="lit" {...props} svg={svg} />
}

/** The uncropped image. */
function readPicture(still: Element): string {
  const whole = still.cloneNode(true) as Element
  whole.setAttribute('viewBox', still.getAttribute('data-whole') ?? '')
  return new XMLSerializer().serializeToString(whole)
}

/** The input that an idle run waits for. */
function Answers({
  play,
  view,
  state,
}: {
  play: Play
  view: NonNullable<ReturnType<Play['view']>>
  state: string
}) {
  if (state === 'PAUSED') {
    return (
      <div class="answers">
        A guard has paused the run.{' '}
        <button type="button" onClick={() => play.answer({ resume: true })}>
          Resume
        </button>
      </div>
    )
  }
  return (
    <>
      {view.pending.map(({ callId, name, arguments: args }) => (
        <div key={callId} class="answers">
          <code>
            {name} {args}
          </code>{' '}
          needs approval.{' '}
          <button type="button" onClick={() => play.answer({ approve: callId })}>
            Approve
          </button>{' '}
          <button type="button" onClick={() => play.answer({ reject: callId })}>
            Reject
          </button>
        </div>
      ))}
    </>
  )
}

function LogField({ onLog }: { onLog: (text: string) => void }) {
  const [text, setText] = useState('')
  return (
    <details class="log">
      <summary>Open a log</summary>
      <div class="log-field">
        <label>
          <span>
            Paste the output of <code>statewright sessions show ID --json</code>. It does not leave this page.
          </span>
          <textarea rows={6} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
        </label>
        <button type="button" onClick={() => onLog(text)}>
          Open
        </button>
      </div>
    </details>
  )
}

/** The playground, initialized from the URL. */
async function open(): Promise<void> {
  const root = document.querySelector('#playground')
  if (root === null) return
  let shared: Draft | null = null
  let problem = ''
  try {
    shared = await readLink(location.hash)
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error)
  }
  const still = root.querySelector('svg')
  root.replaceChildren()
  render(<Playground root={root} still={still} shared={shared} problem={problem} />, root)
}

addEventListener('hashchange', () => location.reload())
await open()

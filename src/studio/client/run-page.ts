import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import type { Answer, ChartView, LiveMessage, MomentView, RecordRow, SessionView } from '../protocol.js'
import type { MarkRequest } from '../requests.js'
import { listRunSteps } from '../run-steps.js'
import { mergeBars, mergeRows } from '../timeline-layout.js'
import { formatError, sessionAddress } from '../format.js'
import { paths } from '../routes.js'
import type { Source } from './data-source.js'
import type { ForkDialog } from './fork-dialog.js'
import { loadPart } from './loading.js'
import { createMomentCache } from './moment-cache.js'
import { showControls, useWrittenAddress } from './page.js'
import { useLatest, useMoment, useNow, usePosition } from './run-hooks.js'
import type { ShareDialog } from './share-dialog.js'
import { lastFork, type Change } from './what-if.js'

export const tabs = ['transcript', 'request', 'state', 'guards', 'cost', 'record', 'chart'] as const
export type Tab = (typeof tabs)[number]

export interface RunProps {
  source: Source
  id: string
  /** The record to show first. Null shows the last one. */
  seq: number | null
  onProblem: (problem: string | null) => void
}

interface PageProps extends Omit<RunProps, 'id'> {
  chart: ChartView
  /** With at least one record. */
  view: SessionView
  end: MomentView | null
  change: (change: (view: SessionView) => SessionView) => void
  reload: () => void
}

type Dialog = { Fork: typeof ForkDialog; change: Change | null; seq: number } | { Share: typeof ShareDialog }

/** The data and actions of the parts of the run page. */
export type RunPage = ReturnType<typeof useRunPage>

export function useRunPage(props: PageProps) {
  const { source, view, change, reload, onProblem } = props
  const { rows, session, readOnly, isPart } = view
  const { id } = session
  const last = rows.length - 1
  const position = usePosition(rows, props.seq, source.isFile)
  const { place, isLive, go, setLive } = position
  const isRunning = session.status === 'running'
  const hasExpiry = session.status === 'waiting' && session.wakeAt !== null
  const time = useNow((isRunning || hasExpiry) && !source.isFile)
  const now = isRunning ? time : undefined
  const [tab, setTab] = useState<Tab>(props.chart.editor ? 'chart' : 'transcript')
  const [dialog, showDialog] = useState<Dialog | null>(null)
  const [stepWords, setStepWords] = useState('')
  const [streaming, setStreaming] = useState('')
  const [areLanesShown, showLanes] = useState(() => matchMedia('(min-height: 790px)').matches)
  // All messages of a long session are loaded once the reader searches them or scrolls to earlier ones.
  const [isWhole, wantWhole] = useState(false)
  // Partial moments are dropped when the whole session is loaded.
  const moments = useMemo(
    () => createMomentCache(source, id, { known: props.end, isWhole }),
    [source, id, isPart, isWhole],
  )
  const row = rows[place] as RecordRow
  const [round, setRound] = useState(0)
  const moment = useMoment(moments, row.seq, isPart ? 0 : (rows[last]?.seq ?? 0), round)

  const listen = useLatest((message: LiveMessage): void => {
    if (message.type === 'store') onProblem(message.problem)
    else if (message.type === 'rows') {
      moments.forgetFrom(message.reset ? 1 : (message.rows[0]?.seq ?? Infinity))
      setRound((before) => before + 1)
      setStreaming('')
      change((before) => ({
        ...before,
        rows: message.reset ? message.rows : mergeRows(before.rows, message.rows),
        bars: message.reset ? message.bars : mergeBars(before.bars, message.bars),
        verdict: message.verdict,
      }))
    } else if (message.type === 'session' && message.row.id === id) {
      change((before) => ({ ...before, session: message.row }))
    } else if (message.type === 'text') {
      setStreaming((before) => (message.reset ? message.text : before + message.text))
    } else if (message.type === 'gone' && message.sessionId === id) reload()
  })
  useEffect(
    () => (isPart ? undefined : source.live({ id, after: rows[last]?.seq ?? 0 }, listen)),
    [source, id, isPart],
  )

  // The first step of a partial session also contains everything before that part.
  const steps = useMemo(
    () => listRunSteps({ rows, bars: view.bars }, now).slice(isPart ? 1 : 0),
    [rows, view.bars, isPart, now],
  )
  useWrittenAddress(source.isFile ? null : sessionAddress(id, isLive ? undefined : row.seq))
  useEffect(() => {
    document.title = showControls(`${session.title || session.id} – Statewright`)
  }, [session.title, session.id])

  /** Whether this studio's agent acts on the session. A process that holds the session acts with its own agent. */
  const isOwn = !session.isAttached && session.holder === null
  const canAct = !source.isFile && readOnly === null
  const openFork = useLatest((change: Change | null, seq: number = row.seq): void => {
    loadPart(() => import('./fork-dialog.js')).then(
      ({ ForkDialog: Fork }) => showDialog({ Fork, change, seq }),
      (error: unknown) => onProblem(formatError(error)),
    )
  })
  useEffect(() => {
    if (!lastFork.isDue || lastFork.id !== id || lastFork.change === null) return
    lastFork.isDue = false
    openFork(lastFork.change)
  }, [id])
  const answer = async (reply: Answer): Promise<void> => {
    await source.send(paths.answers(id), reply)
    if (reply.type === 'revoke') {
      // The next run may read the message, in which case no record follows now.
      moments.forgetFrom(rows[last]?.seq ?? 1)
      setRound((before) => before + 1)
    }
    setLive(true)
  }
  const mark = async (request: MarkRequest): Promise<void> => {
    await source.send(paths.marks(id), request)
    const { seq, mark: kind, note } = request
    const others = session.marks.filter((one) => one.seq !== seq)
    const marks = kind === null ? others : [...others, { seq, mark: kind, note, at: Date.now() }]
    change((before) => ({ ...before, session: { ...before.session, marks } }))
  }
  const share = async (): Promise<void> => {
    const { ShareDialog: Share } = await loadPart(() => import('./share-dialog.js'))
    showDialog({ Share })
  }
  const showTab = useLatest((chosen: Tab): void => {
    if (chosen === 'cost' && place !== last) go(last)
    setTab(chosen)
  })
  return {
    source,
    view,
    row,
    moment,
    loadSession: useCallback((of: string) => source.send(paths.session(of)), [source]),
    loadMoment: (seq: number) => moments.loadMoment(seq, rows[last]?.seq ?? 0),
    steps,
    step: steps.findLast(({ from }) => from <= place),
    /** The time of a running run. */
    now,
    time,
    ...position,
    tab,
    setTab,
    showTab,
    stepWords,
    setStepWords,
    streaming,
    wantWhole,
    areLanesShown,
    showLanes,
    isOwn,
    canAct,
    hasResume: canAct && (session.state === 'PAUSED' || session.status === 'interrupted'),
    dialog,
    showDialog,
    openFork,
    share,
    answer,
    mark,
  }
}

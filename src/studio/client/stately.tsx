import { useEffect, useRef, useState } from 'preact/hooks'
import type { ChartView, MomentView, RecordRow } from '../protocol.js'
import { useTimeout } from './page.js'

const patienceMs = 9000

interface Props {
  editor: NonNullable<ChartView['editor']>
  row: RecordRow
  /** The moment, which may still belong to another record. */
  moment: MomentView
  isDone: boolean
  onReady: (isReady: boolean) => void
}

export function StatelyEditor({ editor, row, moment, isDone, onReady }: Props) {
  const { url, machine, withContext } = editor
  const { origin } = new URL(url)
  const frame = useRef<HTMLIFrameElement>(null)
  const [isReady, setReady] = useState(false)
  const [isSilent, setSilent] = useState(false)
  const post = (message: object): void => frame.current?.contentWindow?.postMessage(message, origin)

  useEffect(() => {
    const listen = ({ source, origin: from, data }: MessageEvent): void => {
      const { type } = (data ?? {}) as { type?: unknown }
      const isTheFrame = source === frame.current?.contentWindow && from === origin
      if (isTheFrame && type === '@statelyai.ready') setReady(true)
    }
    addEventListener('message', listen)
    return () => {
      removeEventListener('message', listen)
      onReady(false)
    }
  }, [])
  useTimeout(patienceMs, () => setSilent(true), [])
  useEffect(() => onReady(isReady), [isReady])
  useEffect(() => {
    if (!isReady) return
    post({
      type: '@statelyai.init',
      machine,
      mode: 'inspecting',
      theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
      readOnly: true,
      capabilities: { edit: false, export: false, ai: false, simulate: false, inspect: true },
      leftPanels: [],
      rightPanels: [],
      activePanels: [],
    })
  }, [isReady])
  useEffect(() => {
    if (!isReady || moment.seq !== row.seq || row.to.length === 0) return
    const { event, context } = inspect(moment, withContext)
    const snapshot = { value: valueOf(row.to), status: isDone ? 'done' : 'active', context }
    post({
      type: '@statelyai.inspectSnapshot',
      snapshot,
      event: event ?? { type: row.type === 'start' ? 'xstate.init' : row.type },
    })
  }, [isReady, row, moment])

  return (
    <>
      {!isReady && (
        <p class="stately-note" role="status">
          Stately's editor ({origin}){' '}
          {isSilent
            ? `has not responded for ${patienceMs / 1000} seconds. It may be unreachable, or its protocol may have changed. The chart shown is the studio's own; no run data was sent to the editor.`
            : 'is loading. Until it responds, the studio shows its own chart.'}
        </p>
      )}
      <iframe
        ref={frame}
        class="stately"
        hidden={!isReady}
        title="Stately's editor"
        src={url}
        referrerpolicy="no-referrer"
      />
    </>
  )
}

/** The data of a moment. Unless all of it is wanted, it contains no text from the conversation. */
function inspect({ record, context, transcript }: MomentView, isWhole: boolean) {
  const { event } = record as { event?: { type: string } }
  if (isWhole) return { event, context: { ...(context as object), messages: transcript } }
  const { state, reason, steps, usage } = context as Record<string, unknown> & {
    usage: { run: { totalTokens: number; cost: number | null } }
  }
  const { totalTokens: tokens, cost } = usage.run
  return { event: event && { type: event.type }, context: { state, reason, steps, tokens, cost } }
}

type Value = string | { [key: string]: Value }

/** XState's value for the innermost active states: `RUNNING.asking` → `{ RUNNING: 'asking' }` */
function valueOf(paths: readonly string[]): Value {
  const heads = new Map<string, string[]>()
  for (const path of paths) {
    const [head = '', ...rest] = path.split('.')
    heads.set(head, [...(heads.get(head) ?? []), ...(rest.length > 0 ? [rest.join('.')] : [])])
  }
  const [only] = heads.keys()
  if (heads.size === 1 && only !== undefined && heads.get(only)?.length === 0) return only
  return Object.fromEntries([...heads].map(([head, inner]) => [head, inner.length > 0 ? valueOf(inner) : {}]))
}

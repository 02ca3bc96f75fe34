import { useEffect } from 'preact/hooks'
import type { EndView, RecordRow, SessionView } from '../protocol.js'
import type { Source } from './data-source.js'
import { paths } from '../routes.js'
import { useLoaded } from './loading.js'

export function useOpenedSession(source: Source, id: string, seq: number | null) {
  const opened = useLoaded(`session ${id}`, async (): Promise<EndView> => {
    if (seq !== null) return { view: await source.send(paths.session(id)), moment: null }
    const { view, moment } = await source.send(paths.end(id))
    return { view: addBlankRows(view), moment }
  })
  const isPart = opened.value?.view.isPart === true
  useEffect(() => {
    if (!isPart) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const ask = (): void => {
      source.send(paths.session(id)).then(
        (view) => isOver || opened.set(() => ({ view, moment: null })),
        () => {
          if (!isOver) timer = setTimeout(ask, 1_000)
        },
      )
    }
    ask()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [source, id, isPart])
  return opened
}

/** Adds a blank row for each missing record, so that positions on the timeline stay the same. */
function addBlankRows(view: SessionView): SessionView {
  const [first] = view.rows
  if (!view.isPart || !first) return view
  const blanks = Array.from({ length: first.seq - 1 }, (_, i) => ({
    ...blankRow,
    seq: i + 1,
    at: first.at,
    run: first.run,
  }))
  return { ...view, rows: [...blanks, ...view.rows] }
}

export const blankRow: RecordRow = {
  seq: 0,
  at: 0,
  run: 0,
  type: 'event',
  label: '…',
  from: [],
  to: [],
  transitionIds: [],
  state: '',
  step: 0,
  tokens: 0,
  cost: null,
  paid: 0,
  flags: [],
  started: [],
  calls: [],
}

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { agentMachine } from '../../../src/index.js'
import { type ChartState, toChart } from '../../../src/diagram/chart.js'
import { Picture } from '../../../src/studio/client/picture.js'
import type { ChartTransition, RecordRow } from '../../../src/studio/protocol.js'

function listStates(state: ChartState): ChartState[] {
  return [state, ...state.states.flatMap(listStates)]
}

/** The target of each transition, by id. The token moves along these transitions. */
const transitions = new Map<string, ChartTransition>(
  listStates(toChart(agentMachine).root).flatMap((state) =>
    state.transitions.map(({ id, source, targets, on, when, actions }) => [
      id,
      {
        id,
        source,
        target: targets[0] ?? null,
        event: on,
        guard: when ?? '',
        actions,
        description: '',
        words: '',
        isTested: null,
      },
    ]),
  ),
)

const noMark = (): '' => ''

interface ChartProps {
  row: RecordRow | null
  /** The duration of a token's move in milliseconds. */
  ms: number
  /** The image, as SVG. */
  svg: string
}

/** The chart with the states that are active after a record, and the path to them. */
export function Chart({ row, ms, svg }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const picture = useMemo(() => new Picture(svg), [])
  useLayoutEffect(() => box.current?.replaceChildren(picture.svg), [picture])
  useLayoutEffect(() => {
    const active = row?.to ?? []
    picture.highlight({ active, transitionIds: row?.transitionIds ?? [], markOf: noMark })
    picture.svg.setAttribute('aria-label', `The chart. Active: ${active.join(', ') || 'nothing'}.`)
    picture.moveToken(row ?? { from: [], to: [], transitionIds: [] }, { transitions, ms })
    const [state] = active
    const frame = box.current
    const at = state === undefined ? null : picture.findBox(state)
    if (!frame || !at || frame.scrollWidth <= frame.clientWidth) return
    const around = frame.getBoundingClientRect()
    frame.scrollBy({
      left: at.left + at.width / 2 - around.left - around.width / 2,
      behavior: ms > 0 ? 'smooth' : 'instant',
    })
  }, [picture, row])
  return <div class="picture" ref={box} tabIndex={0} role="region" aria-label="The chart" />
}

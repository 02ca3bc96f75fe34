// The film of the README: a rehearsed run whose token moves over the overview, next to its transcript. `sessions
// export ID --film` makes one from any session.
import { importSource, openStage } from './stage.mjs'

const modules = ['export-session', 'film-reel', 'pack-moments', 'session-card', 'session-film']
/** Seconds per record, because the rehearsal's timing varies. */
const seconds = 1.5
/** An area of the overview with room for eleven lines. */
const panel = { x: 640, y: 684, width: 346, height: 235 }

export async function filmOf(overview) {
  const [
    { createSessionData },
    { FilmReel, lightChart },
    { unpackMoment },
    { accent, drawWords },
    { drawPanel, drawTranscript },
  ] = await Promise.all(modules.map((name) => importSource(`src/studio/${name}.ts`)))
  const stage = await openStage()
  const { session, chart, moments } = await createSessionData(stage.store, 'paid')
  await stage.close()
  // There is no active state before the first run.
  const scenes = session.rows.filter(({ to }) => to.length > 0).map((row) => ({ row, seconds }))
  // Events must not cover the states left of the transcript.
  const boxes = [
    ...overview.matchAll(
      /data-state="[^>]*>\s*(?:<title>[^<]*<\/title>\s*)?<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g,
    ),
  ]
  const left = boxes.map(([, ...numbers]) => numbers.map(Number)).filter(([x]) => x < panel.x)
  const below = Math.max(...left.map(([, y, height]) => y + height)) + 40

  const reel = new FilmReel(scenes)
  const parts = [
    ...lightChart(reel, overview, { transitions: chart.transitions, hasTrail: false }),
    ...reel.showEach(
      ({ row: { label, to } }) =>
        drawWords(label, 24, below, { size: 18, isBold: true }) +
        drawWords(to.join(', ').replaceAll('.', ' › '), 24, below + 26, { size: 16, colour: accent }),
    ),
    drawPanel(panel),
    ...reel.showEach(({ row }) => drawTranscript(unpackMoment(moments, row.seq).transcript, panel), true),
  ]
  return (
    overview
      // Highlights only taken transitions.
      .replaceAll(/ (fill|stroke)="#0969da"/g, ' $1="#848d97"')
      .replace('agent, overview', 'A rehearsed run, on the chart of the agent')
      .replace('</svg>', () => `${reel.style}\n${parts.join('\n')}\n</svg>`)
  )
}

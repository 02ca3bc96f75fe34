// The film and the picture of the README and the site, from a rehearsed run. `sessions export ID --film` makes a film of any
// session.
import { importSource, openStage } from './stage.mjs'

/** Milliseconds per record, because the rehearsal's timing varies. */
const pace = 1_500

export async function drawFilmAndPicture() {
  const [{ createSessionData }, { drawFilm }, { listVisited }, { drawVisitedChart }] = await Promise.all(
    ['export-session', 'session-film', 'session-card', 'visited-chart'].map((name) =>
      importSource(`src/studio/${name}.ts`),
    ),
  )
  const stage = await openStage()
  const data = await createSessionData(stage.store, 'paid')
  await stage.close()
  const rows = data.session.rows.map((row, at) => ({ ...row, at: at * pace }))
  const paced = { ...data, session: { ...data.session, rows } }
  // Pictures do not show titles on hover.
  const picture = drawVisitedChart(paced.chart, listVisited(paced)).replaceAll(/<title>[^<]*<\/title>/g, '')
  return { film: drawFilm(paced), picture }
}

// The film and the picture of the README and the site, from a rehearsed run. `sessions export ID --film` makes a film of any
// session.
import { importSource, openStage } from './stage.mjs'

/** Milliseconds per record, because the rehearsal's timing varies. */
const pace = 1_500

export async function drawFilmAndPicture() {
  const [{ createSessionData }, { drawFilm }, { drawVisited }] = await Promise.all(
    ['export-session', 'session-film', 'session-card'].map((name) => importSource(`src/studio/${name}.ts`)),
  )
  const stage = await openStage()
  const data = await createSessionData(stage.store, 'paid')
  await stage.close()
  const rows = data.session.rows.map((row, at) => ({ ...row, at: at * pace }))
  const paced = { ...data, session: { ...data.session, rows } }
  return { film: drawFilm(paced), picture: drawVisited(paced) }
}

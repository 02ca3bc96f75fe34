import { memoryStore } from '../../src/index.js'
import type { MomentView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { accepted, book, seat } from '../support/asking.js'
import { stage, until } from '../support/play.js'
import { call, text } from '../support/tools.js'
import { visit } from './visitor.js'

describe('an elicitation of a tool’s server', () => {
  it('is a question of the page, which validates its answer', async () => {
    const store = memoryStore()
    const tools = [book()]
    const theatre = await stage([call('book', { flight: 'X1' }), text('Done.')], { tools, store })
    const visitor = await visit({ store, agent: theatre.agent })
    await theatre.run('Go.', { session: 's' }).rest()
    const { rows } = await visitor.get<SessionView>(paths.session('s'))
    const { pending, actions } = await visitor.get<MomentView>(paths.moment('s', rows.length))
    expect(actions).toContain('toolOutput')
    expect(pending).toMatchObject([{ name: 'book', needs: 'elicitation', elicitation: seat }])
    const answer = (value: unknown) =>
      visitor.post(paths.answers('s'), {
        type: 'toolOutput',
        callId: pending[0]?.callId,
        fingerprint: pending[0]?.fingerprint,
        value,
      })
    const refused = await answer({ action: 'accept', content: { seat: 7 } })
    expect(refused).toMatchObject({ status: 400, error: { code: 'invalid_answer', key: 'content.seat' } })
    expect(await answer(accepted)).toMatchObject({ status: 200 })
    await until(() => store.get('s')?.summary?.state === 'COMPLETED')
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted]])
  })
})

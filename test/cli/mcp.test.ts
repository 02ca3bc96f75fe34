import { reference } from '../mcp/support.js'
import { asAsked, createPlace, says, toolsModule } from './kept.js'
import { removeFolders } from './support.js'
import { longTest } from '../support/extent.js'

afterEach(removeFolders)

const quoted = ({ command, args }: { command: string; args: string[] }) =>
  [command, ...args].map((word) => `'${word}'`).join(' ')

const everything = quoted(reference('everything'))
const echo = { name: 'mcp-servers_everything_echo', arguments: { message: 'Hello' } }

describe('--mcp', () => {
  longTest('adds the tools of a server to a run, and to a resumed run', async () => {
    const { run } = await createPlace({
      'play.json': { turns: [{ toolCalls: [{ id: 'm', name: 'send_mail' }, echo] }] },
      'end.json': {
        turns: [{ toolCalls: [echo] }, { text: 'Done.', expect: { toolResultsInclude: ['Echo: Hello'] } }],
      },
      'tools.mjs': toolsModule,
    })
    const more = ['-t', 'tools.mjs', '--mcp', everything]
    const first = await run(['run', '--session', 's', '--rehearsal=play.json', ...more, 'Go'])
    expect(first.out).toMatch(/✓ \S*echo .*Echo: Hello/)
    expect(first.code).toBe(4)
    const { code, out } = await run([
      'resume',
      's',
      '--rehearsal=end.json',
      ...more,
      '--reject',
      asAsked('m', 'send_mail', {}),
    ])
    expect(out).toMatch(/✓ \S*echo .*Echo: Hello/)
    expect(code).toBe(0)
  })

  test.each([
    ['a server that cannot be started', 'no-such-command-here', /--mcp: .*no-such-command-here/],
    ['an unclosed quote', `"npx`, /--mcp: a quote is not closed/],
  ])('%s is an error before anything runs', async (_what, server, message) => {
    const { run } = await createPlace({ 'play.json': says('Hi.') })
    const { code, err } = await run(['run', '--rehearsal=play.json', '--mcp', server, 'Go'])
    expect(code).toBe(2)
    expect(err).toMatch(message)
    expect((await run(['sessions', 'list'])).out).toContain('There are no sessions in the store ')
  })
})

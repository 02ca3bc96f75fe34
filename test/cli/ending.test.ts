import { SigtermHandler } from '../../src/cli/command.js'
import { calls, createPlace, toolsModule } from './kept.js'
import { cli, removeFolders } from './support.js'

afterEach(removeFolders)

// bin.test.ts uses real signals. These tests cover the prompt during the shutdown.

const hook = 'statewrightEnding'
const mail = calls(['a', 'send_mail', { to: 'ann' }])

test.each([
  ['at a terminal', []],
  ['at a terminal, and in a page', ['--studio']],
])('a person who is asked %s is not asked again, and the session stays unchanged', async (_, more) => {
  const { run, withStore } = await createPlace({ 'play.json': mail, 'tools.mjs': toolsModule })
  const sigterm = new SigtermHandler()
  let isHeeded = false
  const args = ['run', '--session', 's', '--rehearsal=play.json', '-t', 'tools.mjs', ...more, 'Go']
  const { code, err } = await run(args, {
    tty: true,
    sigterm,
    onOutput: (text) => {
      if (text.includes('Run send_mail(')) isHeeded = sigterm.raise()
    },
  })
  expect(isHeeded).toBe(true)
  expect(err).toMatch(/Continue with: statewright resume s --approve a@/)
  expect(code).toBe(4)
  await withStore((store) =>
    expect(store.get('s')).toMatchObject({ holder: null, summary: { state: 'WAITING_FOR_INPUT' } }),
  )
})

describe('while a call runs that must not repeat', () => {
  /** Requests the shutdown while the tool runs. */
  const module = toolsModule.replace(
    'export default [',
    `export default [
    defineTool({ name: 'pay', description: 'Pays.', input, execute: () => globalThis.${hook}() }),`,
  )
  const pay = { turns: [{ toolCalls: [{ name: 'pay' }] }, { text: 'Done.' }] }
  const paid: string[] = []

  async function ended(more: readonly string[]) {
    const place = await createPlace({
      'play.json': pay,
      'end.json': { turns: [{ text: 'Paid.' }] },
      'tools.mjs': module,
    })
    const sigterm = new SigtermHandler()
    Object.assign(globalThis, {
      [hook]: async () => {
        sigterm.raise()
        // Enough time for a process without a pending call to leave the run.
        for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setTimeout(resolve))
        return `paid ${paid.push('paid')}`
      },
    })
    const args = ['run', '--session', 's', '--rehearsal=play.json', '-t', 'tools.mjs', ...more, 'Go']
    return { ...place, ...(await place.run(args, { sigterm })) }
  }

  afterEach(() => {
    Reflect.deleteProperty(globalThis, hook)
    paid.length = 0
  })

  test('the run stops after it, and the printed command continues', async () => {
    const { code, err, run, withStore } = await ended(['--drain', '0'])
    expect(err).toContain(
      'the run was released and can be resumed.\nContinue with: statewright resume s --store=file:kept',
    )
    expect(code).toBe(143)
    await withStore((store) => expect(store.get('s')).toMatchObject({ holder: null }))
    const resumed = await run(['resume', 's', '--rehearsal=end.json', '-t', 'tools.mjs'])
    expect(resumed.out).toMatch(/Paid\.[^]*COMPLETED/)
    expect(paid).toEqual(['paid'])
  })

  test('the run ends within --drain', async () => {
    const { code, out, err } = await ended([])
    expect(err).toContain('the run continues for at most 20 s')
    expect(out).toContain('COMPLETED')
    expect(code).toBe(0)
  })
})

test('--drain accepts whole seconds', async () => {
  const { code, err } = await cli(['run', '--drain', 'soon', 'Go'])
  expect(err).toContain("--drain must be a whole number of at least 0 (got 'soon')")
  expect(code).toBe(2)
})

test('a signal without a listener interrupts', () => {
  const sigterm = new SigtermHandler()
  expect(sigterm.raise()).toBe(false)
  const left: string[] = []
  const giveBack = sigterm.setListener(() => left.push('left'))
  expect(sigterm.raise()).toBe(true)
  giveBack()
  expect(sigterm.raise()).toBe(false)
  expect(left).toEqual(['left'])
})

import { cli, folder, removeFolders } from './support.js'

afterEach(removeFolders)

describe('the command line', () => {
  test.each([[['--help']], [['-h']], [['help']]])('%j shows the commands', async (args) => {
    const { code, out } = await cli(args)
    expect(code).toBe(0)
    expect(out).toMatch(/Usage: statewright <command>[^]*\n {2}run {2}/)
  })

  test.each([
    '',
    ...'run resume send batch mcp sessions studio stately budgets eval guards diagram paths properties diff'.split(
      ' ',
    ),
    ...['list', 'show', 'rename', 'export', 'fork', 'delete', 'check'].map((name) => `sessions ${name}`),
  ])('%s --help fits 80 columns', async (command) => {
    const { out } = await cli([...command.split(' ').filter(Boolean), '--help'])
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  test('run without a model names the three ways to get one', async () => {
    const { code, out, err } = await cli(['run', '--json', 'What?'])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(/^statewright: No model is configured\..*OPENAI_API_KEY.*--base-url.*--rehearsal/)
  })

  test('without a command it prints its help as an error', async () => {
    const { code, out, err } = await cli([])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('Usage: statewright <command>')
  })

  test('fails if stdout cannot be written, unless its reader has closed it', async () => {
    const cwd = await folder({ 'play.json': { turns: [{ text: 'Done.' }] } })
    const rehearsed = ['--rehearsal=play.json', '--store=file:kept']
    await cli(['run', 'Go.', '--session', 'a', ...rehearsed], { cwd })
    for (const args of [
      ['--version'],
      ['sessions', 'list', '--json', '--store=file:kept'],
      ['sessions', 'show', 'a', '--events', '--store=file:kept'],
      ['sessions', 'export', 'a', '--store=file:kept'],
      ['resume', 'a', ...rehearsed],
      ['run', 'Go.', '--events', ...rehearsed],
      ['run', 'Go.', ...rehearsed],
    ]) {
      expect((await cli(args, { cwd })).code).toBe(0)
      const full = await cli(args, { cwd, stdoutFails: 'ENOSPC' })
      expect({ args, code: full.code }).toEqual({ args, code: 1 })
      expect(full.err).toMatch(/incomplete: cannot write to stdout \(ENOSPC: it was refused, write\)\.\n$/)
      const gone = await cli(args, { cwd, stdoutFails: 'EPIPE' })
      expect({ args, code: gone.code }).toEqual({ args, code: args[0] === 'run' ? 130 : 0 })
      expect(gone.err).not.toContain('incomplete')
    }
  })

  test('run --help explains every option, whatever else is on the line', async () => {
    const { code, out } = await cli(['run', '--nonsense', '--help'])
    expect(code).toBe(0)
    for (const option of [
      'config',
      'tools',
      'session',
      'json',
      'events',
      'rehearsal',
      'max-steps',
      'timeout',
      'store',
      'mcp',
    ]) {
      expect(out).toContain(`--${option}`)
    }
  })

  test.each([
    [['help', 'run'], 'run'],
    [['help', 'sessions', 'fork'], 'sessions fork'],
    [['help', 'sessions'], 'sessions <command>'],
  ])('%j shows the help of the command', async (args, command) => {
    const { code, out } = await cli(args)
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`Usage: statewright ${command}`) })
  })

  test.each([
    [['sessions', '--help'], 0],
    [['sessions', 'help'], 0],
    [['sessions'], 2],
    [['sessions', '--json'], 2],
  ])('%j shows the commands on sessions, with exit code %d', async (args, expected) => {
    const { code, out, err } = await cli(args)
    expect(code).toBe(expected)
    expect(expected === 0 ? out : err).toMatch(
      /Usage: statewright sessions <command>[^]*\n {2}sessions fork /,
    )
  })

  test.each([
    ['resume', ['approve', 'reject', 'output', 'mcp', 'store', 'tools']],
    ['sessions list', ['json', 'limit', 'prefix', 'tag', 'children', 'store']],
    ['sessions show', ['at', 'events']],
    ['sessions export', ['markdown', 'card', 'film', 'without-text', 'out', 'force']],
    ['sessions rename', ['default']],
    ['sessions fork', ['at']],
    ['sessions delete', ['yes']],
  ])('%s --help explains its options, and opens no store', async (command, options) => {
    const args = [...command.split(' '), '--store', 'nonsense', '--help']
    const { code, out } = await cli(args)
    expect(code).toBe(0)
    expect(out).toContain(`Usage: statewright ${command}`)
    for (const option of options) expect(out).toContain(`--${option}`)
  })

  test('--version prints the version of the package', async () => {
    expect((await cli(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\S*\n$/)
  })

  test.each([
    [['rum'], "Unknown command 'rum'. Did you mean 'run'?"],
    [['evaluate', 'x'], "Unknown command 'evaluate'. Did you mean 'eval'?"],
    [['chat', 'hi'], "Unknown command 'chat'. Did you mean 'run'?"],
    [['list'], "Unknown command 'list'. Did you mean 'sessions list'?"],
    [['run', '--steps', '3'], 'Unknown option --steps. Did you mean --max-steps?'],
    [['run', '--url', 'http://h'], 'Unknown option --url. Did you mean --base-url?'],
    [['zzzzzz'], "Unknown command 'zzzzzz'. Commands: run, "],
    [['--model', 'm'], '--model belongs to a command. Write the command first: statewright run --model.'],
    [['help', 'rum'], "Unknown command 'rum'. Did you mean 'run'?"],
    [['run', '--hlep'], 'Unknown option --hlep. Did you mean --help?'],
    [['--verson'], 'Unknown option --verson. Did you mean --version?'],
    [['run', '--max-steps', '0', 'x'], '--max-steps must be a whole number of at least 1'],
    [['run', '--json', '--events', 'x'], 'cannot be combined'],
    [['run', '--base-url', 'http://h/v1', '-m', 'm'], 'stdin is empty.'],
    [['run', '--base-url', 'http://h/v1', '-m', 'm', ' '], 'There is no prompt.'],
    [['run', '--base-url', 'http://h/v1', 'x'], 'No model is named for http://h/v1.'],
  ])('%j is a usage error: exit code 2, one sentence and a reference', async (args, message) => {
    const { code, out, err } = await cli(args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    const [first, second, ...rest] = err.trimEnd().split('\n')
    expect(first).toMatch(/^statewright: /)
    expect(first).toContain(message)
    expect(second).toMatch(/^See 'statewright .*--help'\.$/)
    expect(rest).toEqual([])
  })

  const tool = `{ name: 'a', description: 'A.', parameters: { type: 'object' }, validate: (value) => ({ value }), execute() {} }`

  test.each([
    ['a missing configuration', ['-c', 'nope.json'], "--config: there is no file 'nope.json'."],
    ['a configuration that is a folder', ['-c', '.'], "'.' is a folder"],
    ['a configuration that is not JSON', ['-c', 'broken.json'], 'Line 1, column 2'],
    ['an unknown key', ['-c', 'typo.json'], 'Did you mean limits.maxSteps?'],
    ['a value out of range', ['-c', 'zero.json'], 'limits.maxSteps must be'],
    ['an interactive configuration', ['-c', 'chat.json'], 'runs one prompt'],
    ['a module without tools', ['--rehearsal', '-t', 'none.mjs'], 'exports nothing'],
    ['a list of other things', ['--rehearsal', '-t', 'other.mjs'], 'tools[0] is not a tool'],
    ['two tools with one name', ['--rehearsal', '-t', 'twice.mjs'], "Two tools are named 'a'"],
    ['a missing scenario', ['--rehearsal=nope.json'], 'nope.json'],
    ['an invalid scenario', ['--rehearsal=zero.json'], 'is invalid'],
    [
      'a cost limit without a price',
      ['-c', 'cost.json', '--base-url', 'http://h.test/v1', '-m', 'none'],
      'price',
    ],
  ])('%s is refused with exit code 2 and no stack trace', async (_what, args, message) => {
    const cwd = await folder({
      'broken.json': '{,}',
      'typo.json': { limits: { maxStep: 3 } },
      'zero.json': { limits: { maxSteps: 0 } },
      'chat.json': { interactive: true },
      'cost.json': { limits: { costLimit: 1 } },
      'none.mjs': '',
      'other.mjs': 'export default [{}]',
      'twice.mjs': `export default [${tool}, ${tool}]`,
    })
    const { code, out, err } = await cli(['run', ...args, '--json', 'Hi'], { cwd })
    expect(code).toBe(2)
    expect(out).toBe('')
    expect(err).toContain(message)
    expect(err).not.toMatch(/^\s+at /m)
  })
})

import { parseOptions } from '../../src/cli/command.js'
import { readRunOptions, runOptionSpecs } from '../../src/cli/commands/run.js'

const read = (args: readonly string[]) => readRunOptions(parseOptions(args, runOptionSpecs))

describe('the options of run', () => {
  test('arguments that are not options are the prompt', () => {
    expect(read(['What', 'changed?']).prompt).toBe('What changed?')
    expect(read(['--', '--help']).prompt).toBe('--help')
    expect(read(['-']).prompt).toBe('-')
    expect(read([]).prompt).toBeUndefined()
  })

  test('every option has its effect', () => {
    const args =
      '-c c.json -t t.mjs --mcp a --mcp b --store memory: --session s -m gpt --base-url http://h/v1 --api responses -i Be --max-steps 3 --timeout 0 --drain 5 --no-stream --studio --json hi'
    expect(read(args.split(' '))).toEqual({
      prompt: 'hi',
      config: 'c.json',
      tools: 't.mjs',
      mcp: ['a', 'b'],
      store: 'memory:',
      session: 's',
      model: 'gpt',
      baseURL: 'http://h/v1',
      api: 'responses',
      instructions: 'Be',
      limits: { maxSteps: 3, timeoutMs: 0 },
      stream: false,
      studio: true,
      drainMs: 5000,
      output: 'json',
      inspect: false,
      rehearsal: false,
    })
  })

  test.each([
    [['--rehearsal'], true, undefined],
    [['--rehearsal', 'Why?'], true, 'Why?'],
    [['--rehearsal', 'play.json'], 'play.json', undefined],
    [['--rehearsal', 'play.json', 'Why?'], 'play.json', 'Why?'],
    [['--rehearsal=odd name.txt', 'Why?'], 'odd name.txt', 'Why?'],
    [['--rehearsal', 'Read play.json'], true, 'Read play.json'],
    [['--', '--rehearsal', 'play.json'], false, '--rehearsal play.json'],
  ])('%j plays %j and asks %j', (args, rehearsal, prompt) => {
    expect(read(args)).toMatchObject({ rehearsal, prompt })
  })

  test.each([
    [['--max-step', '3'], 'Unknown option --max-step. Did you mean --max-steps?'],
    [['--tool=x'], 'Unknown option --tool. Did you mean --tools?'],
    [['--instr', 'x'], 'Did you mean --instructions?'],
    [['--zzz'], 'Unknown option --zzz. Options: --config, '],
    [['-x'], 'Unknown option -x.'],
    [['--store'], '--store needs a value: --store URL.'],
    [['--config'], '--config needs a value: --config FILE.'],
    [['--config='], '--config needs a value'],
    [['--config', '--json'], "'--json' looks like an option"],
    [['--api', 'respones'], 'Did you mean responses?'],
    [['--json=yes'], '--json is a flag'],
    [['--json', '--events'], 'cannot be combined'],
    [['--rehearsal', '--model', 'm'], 'cannot be combined'],
    [['--rehearsal', '--base-url', 'http://h'], 'cannot be combined'],
    [['--max-steps', '0'], '--max-steps must be a whole number of at least 1'],
    [['--max-steps=-1'], "(got '-1')"],
    [['--max-steps', '2.5'], "(got '2.5')"],
    [['--max-steps', 'Infinity'], "(got 'Infinity')"],
    [['--max-steps', '9'.repeat(30)], '--max-steps must be'],
    [['--timeout', '5s'], '--timeout must be a whole number of at least 0'],
    [['--base-url', 'localhost:1234'], '--base-url must be an http(s) URL'],
    [['--api', 'assistants'], "--api must be one of chat, responses (got 'assistants')"],
    [['--base-url', 'file:///etc/passwd'], '--base-url must be an http(s) URL'],
  ])('%j is refused in one sentence', (args, message) => {
    expect(() => read(args)).toThrow(expect.objectContaining({ code: 'bad_usage' }))
    expect(() => read(args)).toThrow(message)
  })
})

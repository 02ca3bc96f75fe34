// Unusual but real streams. A case defines the text for the user and the content of the next request.
import { apart, calls, chunk, cut, done, end, event, first, say, words } from '../frames.mjs'
import { callsOf, resultsOf } from '../strict-history.mjs'

const wire = (rest) => ({ class: 'wire', ...rest })

/** A stream that must produce this text. */
const reads = (name, title, mistake, text, frames) =>
  wire({
    name,
    title,
    mistake,
    async run({ serve, open, check }) {
      const lane = serve([{ frames }])
      const { text: got, ended } = await open({ lane }).say('Go.')
      check(got === text, `the text ${JSON.stringify(got)} (${ended})`)
    },
  })

/** An answer with calls: each is executed once with its input, and each has its result in the next request. */
const executes = (name, title, mistake, answer, inputs) =>
  wire({
    name,
    title,
    mistake,
    async run({ serve, open, tool, check }) {
      const lane = serve([answer, say('Both are read.')])
      const read = tool('read', { path: 'string' }, ({ path }) => `text of ${path}`)
      const { text, ended } = await open({ lane, tools: [read] }).say('Go.')
      const ran = read.runs.map(({ path }) => path).toSorted()
      check(ran.join() === inputs.join(), `executed: ${ran.join() || 'nothing'} (${ended})`)
      const results = resultsOf(lane.requests[1]?.messages ?? []).map((result) => result.text)
      for (const path of inputs) {
        check(
          results.filter((result) => result.includes(`text of ${path}`)).length === 1,
          `the next request has the results ${JSON.stringify(results)}`,
        )
      }
      check(text === 'Both are read.', `the text ${JSON.stringify(text)} (${ended})`)
    },
  })

/** An invalid answer. The user sees an error, or a retry returns the real answer. */
const tells = (name, title, mistake, plan, fault) =>
  wire({
    name,
    title,
    mistake,
    async run({ serve, open, check, certify }) {
      const lane = serve(Object.assign([], { otherwise: { ...plan, fault: plan.fault ?? fault } }))
      const { text, ok, ended } = await open({ lane }).say('Go.')
      certify(lane, fault)
      check(!ok, `reported as a normal end, with the text ${JSON.stringify(text)} (${ended})`)
      return ended
    },
  })

const read = (id, path) => [id, 'read', { path }]
const plain = [first, ...words('Hello.'), chunk({}, 'stop'), done]
const bytes = Buffer.from(chunk({ content: 'Grüße 🙂' }))

export default [
  reads(
    'text',
    'A plain stream of text',
    'dropsLastWord',
    'Hello from the model.',
    say('Hello from the model.').frames,
  ),
  reads('comments', 'Keep-alive comments and empty lines between events', 'parsesComments', 'Hello again.', [
    ': keep-alive\n\n',
    first,
    ': OPENROUTER PROCESSING\n\n',
    ...words('Hello again.'),
    '\n',
    ...end(),
  ]),
  reads(
    'crlf',
    'Lines ending with CR LF',
    'wantsLf',
    'Hello.',
    plain.map((frame) => frame.replaceAll('\n', '\r\n')),
  ),
  reads(
    'no-space',
    'No space after "data:"',
    'wantsSpace',
    'Hello.',
    plain.map((frame) => frame.replace('data: ', 'data:')),
  ),
  reads('split-utf8', 'Characters split across two chunks', 'decodesPieces', 'Grüße 🙂', [
    first,
    bytes.subarray(0, bytes.indexOf('ü') + 1),
    apart,
    bytes.subarray(bytes.indexOf('ü') + 1, bytes.indexOf('🙂') + 2),
    apart,
    bytes.subarray(bytes.indexOf('🙂') + 2),
    ...end(),
  ]),
  reads('no-done', 'A complete answer without [DONE]', 'wantsDone', 'Hello.', [
    first,
    ...words('Hello.'),
    chunk({}, 'stop'),
  ]),
  reads('nulls', 'Null fields', 'readsNulls', 'Hello.', [
    event({
      id: null,
      choices: [{ index: 0, delta: { role: 'assistant', content: null, tool_calls: null } }],
    }),
    chunk({ content: 'Hello.', tool_calls: null, refusal: null, function_call: null }),
    chunk({ content: null, tool_calls: null }, 'stop'),
    done,
  ]),
  reads('reasoning', 'Reasoning is not part of the text', 'readsReasoning', 'Forty-two.', [
    first,
    chunk({ reasoning_content: 'Let me think.' }),
    ...words('Forty-two.'),
    ...end(),
  ]),
  wire({
    name: 'late-usage',
    title: 'Usage in a final chunk without choices',
    mistake: 'readsUsageEarly',
    needs: ['usage'],
    async run({ serve, open, check, claims }) {
      const lane = serve([say('Hello.', { tokens: [37, 5] })])
      const { usage, text, ended } = await open({ lane }).say('Go.')
      check(text === 'Hello.', `the text ${JSON.stringify(text)} (${ended})`)
      claims(
        lane.requests[0].body.stream_options?.include_usage === true,
        'the request does not ask for usage',
      )
      return check(usage?.input === 37 && usage.output === 5, `usage ${JSON.stringify(usage)}, not 37 and 5`)
    },
  }),
  executes(
    'parallel-calls',
    'Two calls in one stream',
    'onlyLastCall',
    calls([read('c1', 'a'), read('c2', 'b')]),
    ['a', 'b'],
  ),
  executes(
    'interleaved-calls',
    'Two calls with interleaved chunks',
    'onlyLastCall',
    {
      frames: [
        first,
        chunk({
          tool_calls: [
            { index: 0, id: 'c1', type: 'function', function: { name: 'read', arguments: '{"pa' } },
          ],
        }),
        chunk({
          tool_calls: [
            { index: 1, id: 'c2', type: 'function', function: { name: 'read', arguments: '{"path"' } },
          ],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: 'th":"a"}' } }] }),
        chunk({ tool_calls: [{ index: 1, function: { arguments: ':"b"}' } }] }),
        ...end('tool_calls'),
      ],
    },
    ['a', 'b'],
  ),
  executes(
    'calls-in-one-chunk',
    'Two complete calls in one chunk',
    'onlyLastCall',
    {
      frames: [
        first,
        chunk({
          tool_calls: ['a', 'b'].map((path, index) => ({
            index,
            id: `c${index}`,
            type: 'function',
            function: { name: 'read', arguments: JSON.stringify({ path }) },
          })),
        }),
        ...end('tool_calls'),
      ],
    },
    ['a', 'b'],
  ),
  executes(
    'no-index',
    'Two complete calls without an index',
    'wantsIndex',
    {
      frames: [
        first,
        ...['a', 'b'].map((path) =>
          chunk({
            tool_calls: [
              {
                id: `c-${path}`,
                type: 'function',
                function: { name: 'read', arguments: `{"path":"${path}"}` },
              },
            ],
          }),
        ),
        ...end('tool_calls'),
      ],
    },
    ['a', 'b'],
  ),
  executes(
    'same-index',
    'Two complete calls with the same index and different ids',
    'trustsIndex',
    {
      frames: [
        first,
        ...['a', 'b'].map((path) =>
          chunk({
            tool_calls: [
              {
                index: 0,
                id: `c-${path}`,
                type: 'function',
                function: { name: 'read', arguments: `{"path":"${path}"}` },
              },
            ],
          }),
        ),
        ...end('tool_calls'),
      ],
    },
    ['a', 'b'],
  ),
  executes(
    'doubled-ids',
    'Two calls with the same id',
    'trustsIds',
    calls([read('c1', 'a'), read('c1', 'b')]),
    ['a', 'b'],
  ),
  executes('empty-id', 'A call with an empty id', 'trustsIds', calls([read('', 'a')]), ['a']),
  executes(
    'words-and-calls',
    'Text before two calls',
    'dropsWordsOrCalls',
    calls([read('c1', 'a'), read('c2', 'b')], { text: 'I read both.' }),
    ['a', 'b'],
  ),
  executes(
    'finish-stop',
    'Calls in an answer that ends with "stop"',
    'trustsFinish',
    calls([read('c1', 'a')], { finish: 'stop' }),
    ['a'],
  ),
  wire({
    name: 'words-kept',
    title: 'Text before a call is in the next request',
    mistake: 'dropsWordsOrCalls',
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([read('c1', 'a')], { text: 'I read it.' }), say('Done.')])
      await open({ lane, tools: [tool('read', { path: 'string' }, () => 'text')] }).say('Go.')
      const sent = JSON.stringify(lane.requests[1]?.messages.filter(({ role }) => role === 'assistant') ?? [])
      check(sent.includes('I read it.'), `assistant messages in the next request: ${sent}`)
    },
  }),
  wire({
    name: 'no-arguments',
    title: 'A call without arguments ("")',
    mistake: 'wantsArguments',
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([['c1', 'now', '']]), say('Noon.')])
      const now = tool('now', {}, () => 'twelve')
      const { text, ended } = await open({ lane, tools: [now] }).say('Go.')
      const results = resultsOf(lane.requests[1]?.messages ?? [])
      check(text === 'Noon.' && results.length === 1, `the text ${JSON.stringify(text)} (${ended})`)
      return now.runs.length === 1 ? 'executed' : `the model is told: ${results[0].text.slice(0, 80)}`
    },
  }),
  wire({
    name: 'broken-arguments',
    title: 'Arguments that are not valid JSON are not executed, and the model gets an error',
    mistake: 'runsBrokenArguments',
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([['c1', 'read', '{"path":"a" "b"}']]), say('I try again.')])
      const tool1 = tool('read', { path: 'string' }, () => 'text')
      const { text, ended } = await open({ lane, tools: [tool1] }).say('Go.')
      check(tool1.runs.length === 0, `executed with ${JSON.stringify(tool1.runs)}`)
      check(text === 'I try again.', `the text ${JSON.stringify(text)} (${ended})`)
      const [result] = resultsOf(lane.requests[1].messages)
      check(result?.text, `the next request has no result`)
      return result.text.slice(0, 80)
    },
  }),
  wire({
    name: 'wrong-arguments',
    title: 'Arguments that do not match the schema are not executed, and the model gets an error',
    mistake: 'runsBrokenArguments',
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([['c1', 'read', { path: { deep: true } }]]), say('I try again.')])
      const tool1 = tool('read', { path: 'string' }, () => 'text')
      const { text, ended } = await open({ lane, tools: [tool1] }).say('Go.')
      check(tool1.runs.length === 0, `executed with ${JSON.stringify(tool1.runs)}`)
      check(text === 'I try again.', `the text ${JSON.stringify(text)} (${ended})`)
    },
  }),
  wire({
    name: 'unknown-tool',
    title: 'A call to an unknown tool gets an error, and the run continues',
    mistake: 'throwsAtUnknownTool',
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([['c1', 'write', { path: 'a' }]]), say('I try again.')])
      const { text, ended } = await open({
        lane,
        tools: [tool('read', { path: 'string' }, () => 'text')],
      }).say('Go.')
      check(text === 'I try again.', `the text ${JSON.stringify(text)} (${ended})`)
      check(callsOf(lane.requests[1].messages).length <= 1, 'the call is in the history twice')
    },
  }),
  tells(
    'cut',
    'A stream cut after some text is not a complete answer',
    'acceptsCut',
    { frames: [first, ...words('Half of an answer'), cut] },
    'cut',
  ),
  tells(
    'no-end',
    'A stream that closes after some text, without a finish reason',
    'acceptsCut',
    { frames: [first, ...words('Half of an answer')] },
    'no end',
  ),
  tells(
    'error-body',
    'Status 200 with an error as JSON',
    'acceptsAnything',
    { type: 'application/json', frames: [JSON.stringify({ error: { message: 'overloaded', code: 503 } })] },
    'error body',
  ),
  tells(
    'error-event',
    'An error as a stream event',
    'acceptsAnything',
    { frames: [first, ...words('Half of'), event({ error: { message: 'overloaded', code: 503 } }), done] },
    'error event',
  ),
  tells('empty', 'An answer without text or calls', 'acceptsEmpty', { frames: [first, ...end()] }, 'empty'),
  wire({
    name: 'whole-answer',
    title: 'A JSON response to a streaming request is read or reported',
    mistake: 'acceptsAnything',
    async run({ serve, open, check, certify }) {
      const message = { role: 'assistant', content: 'Hello.' }
      const body = {
        id: 'x',
        object: 'chat.completion',
        model: 'scripted',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
      }
      const plan = { type: 'application/json', frames: [JSON.stringify(body)], fault: 'whole' }
      const lane = serve(Object.assign([], { otherwise: plan }))
      const { text, ok, ended } = await open({ lane }).say('Go.')
      certify(lane, 'whole')
      check(
        text === 'Hello.' || !ok,
        `reported as a normal end, with the text ${JSON.stringify(text)} (${ended})`,
      )
      return text === 'Hello.' ? 'read' : ended
    },
  }),
]

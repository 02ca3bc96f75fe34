import { createPlace } from './kept.js'
import { cli, removeFolders } from './support.js'

afterEach(removeFolders)

async function worked() {
  const place = await createPlace({ 'work.json': { turns: [{ text: 'Done.' }] } })
  await place.run(['run', '--session', 'work', '--rehearsal=work.json', 'Work.'])
  return place
}

describe('statewright stately', () => {
  it('serves a page until it is interrupted', async () => {
    const { run } = await worked()
    const interrupt = new AbortController()
    let status = 0
    const { code, out, err } = await run(['stately', '--session', 'work'], {
      signal: interrupt.signal,
      onOutput: (text) => {
        void fetch(text.trim(), { redirect: 'manual' })
          .then((response) => (status = response.status))
          .finally(() => {
            interrupt.abort()
          })
      },
    })
    expect({ code, status, err }).toEqual({
      code: 0,
      status: 303,
      err: 'Open it in a browser on this machine; Ctrl-C ends it.\n',
    })
    expect(out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=\S+#\/session\/work\/1\n$/)
    await expect(fetch(out.trim())).rejects.toThrow('fetch failed')
  })

  it.each([
    [[], /Specify a session with --session ID/],
    [['work'], /Unexpected argument 'work'/],
    [['--session', 'wor'], /There is no session 'wor' here\. Did you mean 'work'\?/],
    [['--session', 'work', '--port', '70000'], /from 0 to 65535/],
    [['--session', 'work', '--port', 'x'], /--port must be a whole number/],
    [['--session', 'work', '--editor', 'editor'], /--editor must be an address such as https:/],
    [['--session', 'work', '--editor', 'javascript:alert(1)'], /--editor must be an address/],
  ])('refuses %j in one sentence', async (args, message) => {
    const { run } = await worked()
    const { code, out, err } = await run(['stately', ...args])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
  })

  it('waits for no page if the store cannot be opened', async () => {
    const { code, err } = await cli(['stately', '--session', 'work', '--store', 'nothing:'])
    expect(code).toBe(2)
    expect(err).toMatch(/nothing:/)
  })
})

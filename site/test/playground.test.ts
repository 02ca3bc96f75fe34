import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, afterEach, describe, it } from 'node:test'
import fc from 'fast-check'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { createAgent, memoryStore, openaiChat } from '../../dist/src/index.js'
import { startRehearsal } from '../../dist/src/rehearsal/index.js'
import { serveSite } from '../serve.ts'
import { root } from '../src/content/package.ts'
import { markPath, readJson } from '../src/playground/json-places.ts'
import { LinkError, readLink, writeLink } from '../src/playground/share-link.ts'
import { findBarriers, findOverflow, launchChromium, looks, openContext } from './browser.ts'

let served: Awaited<ReturnType<typeof serveSite>>
let browser: Browser

before(async () => {
  served = await serveSite()
  browser = await launchChromium()
})

after(async () => {
  await browser.close()
  await served.close()
})

let context: BrowserContext
let page: Page
let faults: string[]
let origins: Set<string>

const wide = { width: 1440, colorScheme: 'light' } as const

/** Opens the page without interaction. */
async function openPage(
  look: (typeof looks)[number] = wide,
  hash = '',
  motion: 'reduce' | 'no-preference' = 'reduce',
): Promise<void> {
  await context?.close()
  context = await openContext(browser, look, motion)
  page = await context.newPage()
  faults = []
  origins = new Set()
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('request', (request) => {
    if (request.url().startsWith('http')) origins.add(new URL(request.url()).origin)
  })
  await page.goto(`${served.url}playground/${hash}`)
  await button('Play').waitFor()
}

/** Opens the page and interacts with it, so that everything loads. */
async function openPlayground(...how: Parameters<typeof openPage>): Promise<void> {
  await openPage(...how)
  await button('Play').hover()
  // Late content moves the elements below it, and a click would miss.
  await page.locator('.picture svg[aria-label^="The chart. Active"]').waitFor()
  await page.locator('.cm-content').nth(1).waitFor()
}

const button = (name: string) => page.getByRole('button', { name, exact: true })
const where = () => page.locator('.where')
const rests = (state: string) => page.locator('.where span', { hasText: state }).waitFor()
const editor = (name: string) => page.getByRole('textbox', { name })
const choose = (name: string, option: string) => page.getByLabel(name).selectOption({ label: option })

async function write(name: string, text: string): Promise<void> {
  await editor(name).click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

describe('the playground', () => {
  beforeEach(() => openPlayground())
  afterEach(() => assert.deepEqual(faults, []))

  for (const look of looks) {
    it(`plays a run at ${look.width} px, ${look.colorScheme}: accessible, without requests to other hosts, and without overflow`, async () => {
      await openPlayground(look)
      assert.deepEqual(await findBarriers(page), [])
      await button('Play').click()
      await rests('COMPLETED')
      assert.match(await page.locator('.transcript').innerText(), /The largest expense is/)
      await page.locator('.picture [data-state="COMPLETED"].active').waitFor()
      for (const tab of ['Transcript', 'Records', 'Guards', 'Output', 'TypeScript']) {
        await button(tab).click()
        assert.deepEqual([tab, await findBarriers(page)], [tab, []])
        assert.deepEqual([tab, await findOverflow(page)], [tab, 0])
      }
      assert.match(await page.locator('.output').innerText(), /rate_limit_exceeded|retry/i)
      assert.deepEqual([...origins], [new URL(served.url).origin])
    })
  }

  it('shows its chart and texts before it loads the loop, and starts at the first click', async () => {
    for (const look of looks) {
      await openPage(look)
      await page.locator('.picture [data-state="COMPLETED"]').first().waitFor()
      assert.match(await editor("The model's script, turn by turn (JSON)").inputValue(), /"turns"/)
      assert.equal(await page.locator('.cm-editor').count(), 0)
      const field = page.getByRole('region', { name: 'The chart', exact: true })
      const before = await field.boundingBox()
      await button('Play').click()
      await rests('COMPLETED')
      await page.locator('.picture [data-state="COMPLETED"].active').waitFor()
      assert.equal((await field.boundingBox())?.height, before?.height)
    }
  })

  it('shows what can be edited on the first screen, and the run below it', async () => {
    for (const name of [
      "The model's script, turn by turn (JSON)",
      'Settings of the agent (JSON)',
      'Your message',
    ]) {
      const box = await editor(name).boundingBox()
      assert.ok(box !== null && box.y + 60 <= 900, `${name}: ${JSON.stringify(box)}`)
    }
    const chart = await page.locator('.picture').boundingBox()
    assert.ok(chart !== null && chart.y <= 600, JSON.stringify(chart))
  })

  for (const example of ['Find the largest expense', 'A call that needs approval', 'A token budget']) {
    it(`shows the run as TypeScript that runs in Node: ${example}`, async () => {
      await choose('Example', example)
      await button('TypeScript').click()
      const program = await page.locator('.output').innerText()
      const file = join(root, `.playground-${process.pid}.mts`)
      writeFileSync(file, program)
      try {
        const { stdout, stderr } = spawnSync(process.execPath, [file], {
          cwd: root,
          encoding: 'utf8',
          timeout: 60_000,
        })
        const ends = { 'A token budget': /^BUDGET_EXCEEDED/ } as Record<string, RegExp>
        assert.match(stdout, ends[example] ?? /^COMPLETED .*(Lisbon|settled)/, stderr)
      } finally {
        rmSync(file)
      }
    })
  }

  it('also loads the loop for keyboard users', async () => {
    await openPage()
    await button('Play').focus()
    await page.locator('.cm-content').nth(1).waitFor()
  })

  it('keeps the text and cursor position entered before the editors load', async () => {
    await openPage()
    let give = (): void => {}
    const permission = new Promise<void>((resolve) => (give = resolve))
    await page.route(/\/editor[^/]*\.js/, async (route) => {
      await permission
      await route.continue()
    })
    const field = editor('Settings of the agent (JSON)')
    await field.fill('{ "limits": {} }')
    await field.press('Home')
    await page.keyboard.type('AB')
    give()
    await page.locator('.cm-content').nth(1).waitFor()
    await page.locator('.cm-focused').waitFor()
    await page.keyboard.type('CD')
    await page.locator('.cm-focused', { hasText: 'ABCD{ "limits": {} }' }).waitFor()
    await page
      .getByText(/^Line 1: Not valid JSON/)
      .first()
      .waitFor()
  })

  it('reports an error if the loop cannot be loaded', async () => {
    await openPage()
    await page.route(/\/loop[^/]*\.js/, (route) => route.abort())
    await button('Play').click()
    await page.getByRole('status').getByText('The loop could not be loaded.').waitFor()
    assert.equal(await button('Play').isEnabled(), true)
  })

  it('renders the Markdown of an answer, but not its HTML', async () => {
    const text =
      '**Rent** is the largest:\n\n- `offsite`\n- <b>laptops</b>\n\n| a | b |\n| - | - |\n| 1 | 2 |'
    await write("The model's script, turn by turn (JSON)", JSON.stringify({ turns: [{ text }] }))
    await button('Play').click()
    await rests('COMPLETED')
    const answer = page.locator('.transcript > .assistant')
    assert.equal(await answer.locator('strong').innerText(), 'Rent')
    assert.equal(await answer.locator('li').nth(1).innerText(), '<b>laptops</b>')
    assert.equal(await answer.locator('td').count(), 2)
    assert.deepEqual(await findBarriers(page), [])
  })

  it('goes back to any record, on the chart and in the transcript', async () => {
    await button('Play').click()
    await rests('COMPLETED')
    await button('Records').click()
    await page.locator('.records button', { hasText: 'rate limit' }).click()
    await page.locator('.picture [data-state="RUNNING.asking.backingOff"].active').waitFor()
    await button('Transcript').click()
    assert.doesNotMatch(await page.locator('.transcript').innerText(), /Three notes/)
  })

  it('marks invalid JSON and invalid scenario keys at their positions', async () => {
    await write("The model's script, turn by turn (JSON)", '{\n  "turns": [\n    { "text": "Hi." \n  ]\n}')
    await page
      .getByText(/^Line 4: Not valid JSON: comma expected\.$/)
      .first()
      .waitFor()
    assert.equal(await button('Play').isDisabled(), true)
    await write(
      "The model's script, turn by turn (JSON)",
      '{\n  "turns": [\n    { "text": "Hi." },\n    { "txt": "Ho." }\n  ]\n}',
    )
    await page.getByText(/^Line 4: The script is invalid at turns\[1\]\.txt: the key is unknown\.$/).waitFor()
    assert.equal(await page.locator('.cm-lintRange-error').innerText(), '"txt": "Ho."')
    await page.getByRole('status').getByText('Fix line 4 of the script to play.').waitFor()
    await write("The model's script, turn by turn (JSON)", '{ "turns": [{ "text": "Hi." }] }')
    await write('Settings of the agent (JSON)', '{\n  "limits": {\n    "maxStep": 3\n  }\n}')
    await page.getByText(/^Line \d: .*maxStep/).waitFor()
    assert.equal(await button('Play').isDisabled(), true)
  })

  for (const when of ['at rest', 'while a run plays']) {
    it(`keeps each letter of fast typing ${when}, in both editors, and stays responsive`, async () => {
      if (when !== 'at rest') {
        await openPlayground(wide, '', 'no-preference')
        await button('Play').click()
        await rests('asking')
      }
      const script = editor("The model's script, turn by turn (JSON)")
      const settings = editor('Settings of the agent (JSON)')
      // The editor renders only the visible part of a long text.
      const text = async (one: typeof script) =>
        (await one.locator('.cm-line').allInnerTexts()).slice(0, 12).join('\n')
      const before = await text(script)
      await script.locator('.cm-line').nth(3).click()
      const word = 'PEEKABOO'.repeat(4)
      await page.keyboard.type(word)
      const after = await text(script)
      assert.ok(after.includes(word))
      assert.equal(after.replace(word, ''), before)
      await settings.click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.type(word)
      assert.ok((await text(settings)).startsWith(`${word}{`))
      assert.equal(await text(script), after)
    })
  }

  it('completes the keys of a turn', async () => {
    await write("The model's script, turn by turn (JSON)", '{ "turns": [{ "tool" }] }')
    for (let back = 0; back < 6; back++) await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Control+Space')
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'toolCalls' }).waitFor()
  })

  it('asks a person, and continues with the answer', async () => {
    await choose('Example', 'A call that needs approval')
    await button('Play').click()
    await rests('WAITING_FOR_INPUT')
    await button('Approve').click()
    await rests('COMPLETED')
    assert.match(await page.locator('.transcript').innerText(), /Paid 3851\.7 EUR/)
  })

  it('lets a guard halt a model that repeats itself, and allows other guards', async () => {
    await choose('Example', 'A model that repeats itself')
    await choose('Guards', 'Halt with an error')
    await button('Play').click()
    await rests('ERROR')
    await choose('Guards', 'The rules of openhuman')
    await button('Play').click()
    await rests('PAUSED')
    await button('Resume').waitFor()
  })

  it('forks a session with another result, and continues the script from there', async () => {
    await choose('Example', 'A call that needs approval')
    await button('Play').click()
    await rests('WAITING_FOR_INPUT')
    await page.getByRole('button', { name: 'What if… the result of read_file were different' }).click()
    await page
      .getByRole('textbox', { name: 'What if the result of read_file were' })
      .fill('It is paid already.')
    await button('Run from here').click()
    await page.locator('.segments [aria-pressed="true"]', { hasText: 'What if' }).waitFor()
    await button('Approve').waitFor()
    assert.match(await page.locator('.transcript').innerText(), /It is paid already\./)
    const goesOn = page.getByText('The script continues unchanged, even if the tool returned something else.')
    await goesOn.waitFor()
    await button('Approve').click()
    await rests('COMPLETED')
    await button('Run 1').click()
    assert.match(await where().innerText(), /WAITING_FOR_INPUT/)
    assert.equal(await goesOn.count(), 0)
  })

  it('names the example of an edited script, without moving the editor', async () => {
    const top = () =>
      page
        .locator('.cm-editor')
        .first()
        .evaluate((editor) => editor.getBoundingClientRect().top + scrollY)
    const before = await top()
    await page.locator('.cm-content').first().locator('.cm-line').nth(3).click()
    await page.keyboard.type('PEEK')
    await page.getByText('Edited: “Find the largest expense”.').waitFor()
    assert.equal(await page.getByText(/The model reads three notes/).isVisible(), false)
    assert.equal(await top(), before)
  })

  it('forks a finished run, with another result and with another message', async () => {
    await choose('Example', 'A call that needs approval')
    await button('Play').click()
    await button('Approve').click()
    await rests('COMPLETED')
    await page.getByRole('button', { name: 'What if… the result of read_file were different' }).click()
    await page
      .getByRole('textbox', { name: 'What if the result of read_file were' })
      .fill('It is due in May.')
    await button('Run from here').click()
    await button('Approve').waitFor()
    assert.match(await page.locator('.transcript').innerText(), /It is due in May\./)
    await button('Run 1').click()
    await page.getByRole('button', { name: 'What if… your message were different' }).click()
    await page.getByRole('textbox', { name: 'What if your message were' }).fill('Pay nothing.')
    await button('Run from here').click()
    await button('Approve').waitFor()
    assert.match(await page.locator('.transcript').innerText(), /Pay nothing\./)
    assert.equal(
      await page
        .getByRole('status')
        .filter({ hasText: /no run/ })
        .count(),
      0,
    )
  })

  it('restarts from before the what-if if an earlier message is edited', async () => {
    await choose('Example', 'A call that needs approval')
    await button('Play').click()
    await button('Approve').waitFor()
    const change = async (what: string, words: string): Promise<void> => {
      await page.getByRole('button', { name: `What if… ${what} were different` }).click()
      await page.getByRole('textbox', { name: `What if ${what} were` }).fill(words)
      await button('Run from here').click()
      await page.locator('.transcript', { hasText: words }).waitFor()
      await button('Approve').waitFor()
    }
    const transcript = () => page.locator('.transcript').innerText()
    await change('the result of read_file', 'It is due in May.')
    await change('the result of read_file', 'It is due in June.')
    assert.doesNotMatch(await transcript(), /May/)
    await change('your message', 'Pay nothing.')
    assert.doesNotMatch(await transcript(), /June/)
    await page
      .getByRole('status')
      .getByText(
        /^This session continues from Run \d+, before “What if \d+” started\. The change made there is not included\.$/,
      )
      .waitFor()
    await button('Approve').click()
    await rests('COMPLETED')
    assert.match(await transcript(), /Paid 3851\.7 EUR/)
  })

  it('cancels a model that never answers', async () => {
    await write("The model's script, turn by turn (JSON)", '{ "turns": [{ "hang": true }] }')
    await button('Play').click()
    await rests('asking')
    await button('Cancel').click()
    await rests('CANCELLED')
  })

  it('shares the draft as a link, and reports a damaged link', async () => {
    await write("The model's script, turn by turn (JSON)", '{ "turns": [{ "text": "From a link." }] }')
    await button('Share').click()
    await page.waitForURL(/#s=/)
    const { hash } = new URL(page.url())
    await openPlayground(undefined, hash)
    await button('Play').click()
    await rests('COMPLETED')
    assert.match(await page.locator('.transcript').innerText(), /From a link\./)
    await openPlayground(undefined, `${hash.slice(0, -6)}xxxxxx`)
    await page
      .getByRole('status')
      .getByText(/This link is damaged/)
      .waitFor()
    await openPlayground(undefined, `#s=${'A'.repeat(40_000)}`)
    await page.getByRole('status').getByText('This link is too long for the playground.').waitFor()
    // A link with a script shows its errors before any interaction.
    const script = '{\n  "turns": ['
    await openPage(undefined, `#${await writeLink({ input: 'Hi.', script, settings: '{}' })}`)
    await page
      .getByText(/^Line 2: Not valid JSON/)
      .first()
      .waitFor()
    await page.getByRole('status').getByText('Fix line 2 of the script to play.').waitFor()
    assert.equal(await button('Play').isDisabled(), true)
  })

  it('shows a pasted log, and refuses invalid text with its line', async () => {
    const rehearsal = await startRehearsal({ turns: [{ text: 'From a log.' }] })
    const store = memoryStore()
    const model = openaiChat({ model: 'm', baseURL: rehearsal.url })
    await createAgent({ model, store, prices: null }).run('Say it.', { session: 's' }).result
    await rehearsal.close()
    const records = store.read('s')
    const lines = records.map(({ seq, at, type, data }) =>
      JSON.stringify({ type, seq, at, ...(JSON.parse(data) as object) }),
    )
    await page.getByText('Open a log').click()
    const field = page.getByRole('textbox', { name: /sessions show ID --json/ })
    await field.fill(lines.join('\n'))
    await button('Open').click()
    await rests('COMPLETED')
    assert.match(await page.locator('.transcript').innerText(), /From a log\./)
    assert.equal(await page.getByRole('button', { name: /What if/ }).count(), 0)
    await field.fill(`${lines[0]}\nnothing`)
    await button('Open').click()
    await page.getByRole('status').getByText('Line 2 is not valid JSON.').waitFor()
  })

  it('shows a stored log, and names the damaged part of another', async () => {
    await page.getByText('Open a log').click()
    const field = page.getByRole('textbox', { name: /sessions show ID --json/ })
    const folder = new URL('../../test/fixtures/sessions/', import.meta.url)
    let last: object[] = []
    for (const version of ['0.2.0']) {
      const { sessions } = JSON.parse(readFileSync(new URL(`${version}/approval.json`, folder), 'utf8')) as {
        sessions: Record<string, object[]>
      }
      last = Object.values(sessions)[0] ?? []
      await field.fill(JSON.stringify(last))
      await button('Open').click()
      await page.getByText(`Record ${last.length} of ${last.length}. Drag to see another record.`).waitFor()
      await rests('WAITING_FOR_INPUT')
    }
    const says = (text: RegExp) => page.getByRole('status').getByText(text).waitFor()
    await field.fill('{"type":"opened","seq":1,"at":1,"version":99}')
    await button('Open').click()
    await says(/written with log version 99; .* Open it with the newer Statewright that wrote it\./)
    await field.fill(JSON.stringify([last[0], { ...last[1], seq: 7 }]))
    await button('Open').click()
    await says(/^This log is damaged: record 2 is missing\. The page shows the records up to 1\.$/)
    await field.fill('{"type":"initial","seq":1,"at":1}')
    await button('Open').click()
    await says(/^This log is damaged: .* None of its records can be shown\.$/)
  })

  it('calls an endpoint with the key of the reader, and does not store the key', async () => {
    const rehearsal = await startRehearsal({ turns: [{ text: 'From an endpoint.' }] })
    await page.getByText('Use your own model').click()
    await page.getByRole('checkbox').check()
    await page.getByLabel('Base URL').fill(rehearsal.url)
    await page.getByLabel('Model', { exact: true }).fill('m')
    await page.getByLabel('Key').fill('sk-very-secret')
    await button('Play').click()
    await rests('COMPLETED')
    assert.match(await page.locator('.transcript').innerText(), /From an endpoint\./)
    assert.equal(rehearsal.requests[0]?.headers.authorization, 'Bearer sk-very-secret')
    await button('Share').click()
    await page.waitForURL(/#s=/)
    assert.doesNotMatch(JSON.stringify(await readLink(new URL(page.url()).hash)), /very-secret/)
    const stored = await page.evaluate(() =>
      JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]),
    )
    assert.doesNotMatch(stored, /very-secret/)
    await rehearsal.close()
  })
})

describe('links', () => {
  it('contain any draft', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 200 })
    const draft = fc.record({ input: text, script: text, settings: text }, { noNullPrototype: true })
    await fc.assert(
      fc.asyncProperty(draft, async (one) =>
        assert.deepEqual(await readLink(`#${await writeLink(one)}`), one),
      ),
    )
  })

  it('are refused with a readable error if they are damaged', async () => {
    const whole = await writeLink({
      input: 'Hi.',
      script: '{ "turns": [{ "text": "Hi." }] }',
      settings: '{}',
    })
    const damage = fc.record({
      at: fc.nat(whole.length - 3),
      with: fc.constantFrom('A', 'b', '-', '%', '', '日'),
    })
    await fc.assert(
      fc.asyncProperty(damage, async ({ at, with: other }) => {
        const coded = `${whole.slice(0, 2 + at)}${other}${whole.slice(3 + at)}`
        await readLink(coded).catch((error: unknown) => assert.ok(error instanceof LinkError))
      }),
    )
    assert.equal(await readLink('#elsewhere'), null)
  })

  it('are not decompressed if their content is too large', async () => {
    const stream = new Blob(['[1,"', ' '.repeat(20_000_000), '"]'])
      .stream()
      .pipeThrough(new CompressionStream('deflate-raw'))
    const coded = Buffer.from(await new Response(stream).arrayBuffer()).toString('base64url')
    assert.ok(coded.length < 32_768)
    await assert.rejects(readLink(`#s=${coded}`), /contains more than a script/)
    await assert.rejects(readLink(`#s=${'A'.repeat(40_000)}`), /too long/)
    await assert.rejects(writeLink({ input: '', script: 'x'.repeat(300_000), settings: '' }), LinkError)
  })
})

describe('positions in JSON', () => {
  it('point to the key or value at a path, or to the enclosing value', () => {
    const text = '{\n  "turns": [\n    { "text": "a" },\n    { "status": "x" }\n  ]\n}'
    const marked = (path: string) => text.slice(markPath(text, path, '').from, markPath(text, path, '').to)
    assert.equal(marked('turns[1].status'), '"status": "x"')
    assert.equal(marked('turns[0].gone'), '{')
    assert.equal(markPath(text, 'turns[1].status', '').line, 4)
  })

  it('exist for any text that is not JSON, and lie inside the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const { marks } = readJson(text)
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        assert.equal(marks.length === 0, isJson)
        for (const { from, to } of marks) assert.ok(from >= 0 && from <= to && to <= text.length)
      }),
    )
  })
})

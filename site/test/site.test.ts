import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { serveSite } from '../serve.ts'
import { checkLinks } from '../src/check-links.ts'
import { listGroups } from '../src/content/groups.ts'
import { rewriteLinks } from '../src/content/links.ts'
import { entryPoints, root, site } from '../src/content/package.ts'
import { readPages } from '../src/content/pages.ts'
import { findBarriers, findOverflow, launchChromium, looks, openContext } from './browser.ts'

/** One page of each kind. */
const kinds = {
  'the front page': '',
  'the map': 'docs/',
  'a document': 'docs/runs/',
  'a document with pictures': 'docs/studio/',
  'a document with wide tables': 'docs/performance/',
  'the results of the conformance suite': 'docs/conformance/',
  'an entry point': 'api/testing/',
  'a function': 'api/statewright/functions/createAgent/',
  'an interface': 'api/statewright/interfaces/Run/',
  'the changelog': 'changelog/',
  'a folder': 'files/examples/chat-plain/',
  'the playground, before anyone turns to it': 'playground/',
  'a page that is not there': 'nothing/',
}

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

describe('each kind of page', () => {
  for (const [kind, path] of Object.entries(kinds)) {
    it(`${kind} requests nothing from other hosts, has at most 100 kB of script, is accessible, and fits its window`, async () => {
      for (const look of looks) {
        const context = await openContext(browser, look)
        const page = await context.newPage()
        const hosts = new Set<string>()
        const faults: string[] = []
        const bodies: Promise<Buffer>[] = []
        page.on('pageerror', (error) => faults.push(error.message))
        page.on('request', (request) => {
          if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).origin)
        })
        page.on('response', (response) => {
          if (response.request().resourceType() === 'script') bodies.push(response.body())
        })
        await page.goto(served.url + path, { waitUntil: 'networkidle' })
        assert.deepEqual([...hosts], [new URL(served.url).origin])
        assert.deepEqual(faults, [])
        const sizes = (await Promise.all(bodies)).map((body) => gzipSync(body).length)
        const scripts = sizes.reduce((sum, size) => sum + size, 0)
        assert.ok(scripts <= 100_000, `${scripts} bytes of script`)
        assert.deepEqual([look, await findBarriers(page)], [look, []])
        assert.deepEqual([look, await findOverflow(page)], [look, 0])
        await context.close()
      }
    })
  }

  it('has its final size before its images load', () => {
    const html = readFileSync(`${site}dist/docs/studio/index.html`, 'utf8')
    const pictures = html.match(/<img [^>]*src="\/files[^>]*>/g) ?? []
    assert.ok(pictures.length > 0)
    assert.deepEqual(
      pictures.filter((tag) => !/width="\d+" height="\d+"/.test(tag)),
      [],
    )
  })
})

describe('the front page', () => {
  it('shows a sentence, the install command, a program and the film on the first screen', async () => {
    const context = await openContext(browser, { width: 1440, colorScheme: 'light' })
    const page = await context.newPage()
    await page.goto(served.url, { waitUntil: 'networkidle' })
    const parts = [
      '.first-screen .tagline',
      '.first-screen .start pre',
      '.first-screen .pair pre',
      '.pair img',
    ]
    for (const part of parts) {
      const box = await page.locator(part).boundingBox()
      assert.ok(box !== null && box.y + box.height <= 900, `${part}: ${JSON.stringify(box)}`)
    }
    assert.equal(await page.locator('.first-screen .start button').isVisible(), true)
    const links = await page
      .locator('header a.header-link')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href')))
    assert.deepEqual(links, ['/docs/', '/playground/', '/api/statewright/'])
    await context.close()
  })

  it('shows a readable picture instead of the film on a phone', async () => {
    const context = await openContext(browser, { width: 400, colorScheme: 'light' })
    const page = await context.newPage()
    await page.goto(served.url, { waitUntil: 'networkidle' })
    const source = await page.locator('.pair img').evaluate((one) => (one as HTMLImageElement).currentSrc)
    assert.match(source, /agent\.visited\.svg$/)
    await context.close()
  })
})

describe('the search', () => {
  it('finds guides before the reference, and the reference before the changelog', async () => {
    const context = await openContext(browser, { width: 1440, colorScheme: 'light' })
    const page = await context.newPage()
    await page.goto(served.url, { waitUntil: 'networkidle' })
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('textbox').fill('approve a tool call')
    await page.locator('dialog a[href^="/docs/"]').first().waitFor()
    const found = await page
      .locator('dialog a.pagefind-ui__result-link')
      .evaluateAll((all) => all.map((one) => (one.getAttribute('href') ?? '').replace(/#.*/, '')))
    const pages = [...new Set(found)].slice(0, 5)
    assert.ok(pages.slice(0, 3).includes('/docs/approvals/') && pages.includes('/docs/runs/'), pages.join())
    assert.deepEqual(
      pages.filter((path) => !path.startsWith('/docs/')),
      [],
    )
    await context.close()
  })

  it('finds a word first in a guide, and a name first in the reference', async () => {
    const context = await openContext(browser, { width: 1440, colorScheme: 'light' })
    const page = await context.newPage()
    for (const [words, place] of [
      ['budget', '/docs/'],
      ['streaming', '/docs/'],
      ['createAgent', '/api/statewright/functions/createAgent/'],
    ] as const) {
      // Each page starts without earlier results.
      await page.goto(served.url, { waitUntil: 'networkidle' })
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').getByRole('textbox').fill(words)
      const first = page.locator('dialog a.pagefind-ui__result-link').first()
      await first.waitFor()
      assert.ok((await first.getAttribute('href'))?.startsWith(place), words)
    }
    await context.close()
  })

  it('finds a document and an entry of the reference by their words', async () => {
    const context = await openContext(browser, { width: 1440, colorScheme: 'light' })
    const page = await context.newPage()
    await page.goto(served.url, { waitUntil: 'networkidle' })
    await page.keyboard.press('Control+k')
    const field = page.getByRole('dialog').getByRole('textbox')
    for (const [words, href] of [
      ['leases deletion error codes', '/docs/sessions/'],
      ['createLimiter', '/api/fleet/functions/createLimiter/'],
    ] as const) {
      await field.fill(words)
      await page.locator(`dialog a[href^="${href}"]`).first().waitFor()
    }
    await context.close()
  })
})

describe('the content of the site', () => {
  const { pages } = readPages()

  it('has a page for every document and every entry point', () => {
    const ids = new Set(pages.map(({ id }) => id))
    const documents = readdirSync(`${root}docs`).filter(
      (name) => name.endsWith('.md') && name !== 'README.md',
    )
    const wanted = [
      ...documents.map((name) => `docs/${name.slice(0, -3)}`),
      ...entryPoints.map(({ folder }) => `api/${folder === 'index' ? 'statewright' : folder}`),
    ]
    assert.deepEqual(
      wanted.filter((id) => !ids.has(id)),
      [],
    )
  })

  it('starts the menu with the tutorial and at most 14 guides, then shows the other groups closed', () => {
    const html = readFileSync(`${site}dist/docs/index.html`, 'utf8')
    const groups = Array.from(
      html.matchAll(/<details( open)?[^>]*>[^]*?<span[^>]*class="large[^"]*"[^>]*>([^<]+)</g),
      ([, open, label]) => [label, open !== undefined],
    )
    assert.deepEqual(groups.slice(0, 2), [
      ['Tutorial', true],
      ['Guides', true],
    ])
    assert.ok(
      groups.slice(2).every(([, open]) => open === false),
      JSON.stringify(groups),
    )
    const guides = listGroups().find(({ label }) => label === 'Guides')
    assert.ok((guides?.items.length ?? 0) <= 14)
  })

  it('starts the reference of an entry point with the functions that people call most', () => {
    const page = pages.find(({ id }) => id === 'api/statewright')
    const [, , first = ''] = page?.html.split('\n## ') ?? []
    assert.match(page?.html ?? '', /## Most used\n/)
    assert.ok((page?.html.indexOf('[createAgent]') ?? 0) < (page?.html.indexOf('## Classes') ?? 0))
    assert.match(first, /^Functions/)
  })

  it('links from the 404 page to existing pages', () => {
    const html = readFileSync(`${site}dist/404.html`, 'utf8')
    for (const path of ['/docs/tutorial/', '/docs/', '/api/', '/playground/'])
      assert.ok(html.includes(`href="${path}"`), path)
  })

  it('skips no level of headings on any page', () => {
    const skipped = pages.flatMap(({ id }) => {
      const html = readFileSync(`${site}dist/${id === 'index' ? '' : `${id}/`}index.html`, 'utf8')
      const [, main = ''] = html.split('<main')
      const levels = Array.from(main.matchAll(/<h([1-6])[ >]/g), ([, level]) => Number(level))
      return levels.some((level, at) => level > (levels[at - 1] ?? 1) + 1) ? [id] : []
    })
    assert.deepEqual(skipped, [])
  })

  it('provides every page as Markdown, and links to it', () => {
    for (const { id, title } of pages) {
      const html = readFileSync(`${site}dist/${id === 'index' ? '' : `${id}/`}index.html`, 'utf8')
      const [, address = ''] = /<link rel="alternate" type="text\/markdown" href="([^"]+)"/.exec(html) ?? []
      assert.equal(address, `/${id}.md`)
      assert.ok(readFileSync(`${site}dist${address}`, 'utf8').startsWith(`# ${title}\n`), id)
    }
  })

  it('keeps the links of its Markdown within its Markdown', async () => {
    const broken: string[] = []
    for (const { id, md } of pages) {
      for (const [, target = ''] of md.matchAll(/\]\((\/[^)#\s]+)/g)) {
        const { status } = await fetch(new URL(target, served.url), { method: 'HEAD' })
        if (status !== 200) broken.push(`${id}: ${target}`)
      }
    }
    assert.deepEqual(broken, [])
  })

  it('lists its documents for models, and provides all of them in one file', async () => {
    const list = await (await fetch(`${served.url}llms.txt`)).text()
    const full = await (await fetch(`${served.url}llms-full.txt`)).text()
    assert.match(list, /^# Statewright\n\n> /)
    for (const { id, title } of pages.filter(({ id }) => id.startsWith('docs/'))) {
      assert.ok(list.includes(`- [${title}](/${id}.md): `), id)
      assert.ok(full.includes(`\n# ${title}\n`), id)
    }
  })

  it('starts like the README, and lists when to use something else', () => {
    const front = readFileSync(`${site}dist/index.html`, 'utf8')
    for (const part of [
      'agent.film.svg',
      'createAgent',
      'Cancel always wins',
      'statewright/durable',
      'LangChain',
      'When to use something else',
    ])
      assert.ok(front.includes(part), part)
  })
})

describe('links', () => {
  const places = {
    pageOf: new Map([
      ['docs/tools.md', 'docs/tools'],
      ['README.md', 'readme'],
    ]),
    files: new Set<string>(),
  }

  it('lead from files to pages, and from pages to files', () => {
    const rewritten = (form: 'html' | 'md') =>
      rewriteLinks(
        '[a](tools.md#b) [c](../README.md) [d](../src/index.ts) [e](https://example.com) `[f](g.md)`',
        'docs/runs.md',
        form,
        places,
      )
    assert.equal(
      rewritten('html'),
      '[a](/docs/tools/#b) [c](/readme/) [d](/files/src/index.ts.txt) [e](https://example.com) `[f](g.md)`',
    )
    assert.match(rewritten('md'), /^\[a\]\(\/docs\/tools\.md#b\) \[c\]\(\/readme\.md\)/)
    assert.deepEqual([...places.files], ['src/index.ts'])
  })

  it('are refused if the target does not exist, with their source and target', () => {
    assert.throws(
      () => rewriteLinks('[a](gone.md)', 'docs/runs.md', 'html', places),
      /docs\/runs\.md links to docs\/gone\.md/,
    )
  })

  it('are checked on built pages, including anchors and images', async () => {
    const folder = `${mkdtempSync(join(tmpdir(), 'statewright-links-'))}/`
    mkdirSync(`${folder}a`)
    writeFileSync(
      `${folder}index.html`,
      '<a href="/a/#there">1</a><a href="a/#gone">2</a><a href="/b/">3</a><img src="/c.svg">',
    )
    writeFileSync(
      `${folder}a/index.html`,
      '<h2 id="there">A</h2><a href="../">4</a><a href="https://example.com/">5</a>',
    )
    const { broken, checked } = await checkLinks(folder, '/')
    rmSync(folder, { recursive: true })
    assert.deepEqual(broken, ['a/#gone, from index.html', '/b/, from index.html', '/c.svg, from index.html'])
    assert.equal(checked, 5)
  })
})

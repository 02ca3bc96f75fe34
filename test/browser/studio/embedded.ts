import { createActor, setup } from 'xstate'
import { createAgent, defineTool } from '../../../src/index.js'
import { createOneCallModel } from '../../support/manual-model.js'
import { openPageForEach, page, shown, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeEmbedded(): void {
  describe('an embedded actor', () => {
    openPageForEach()

    it('is shown while it works, and approved in the page, from its own machine', async () => {
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        input: { type: 'object' },
        needsApproval: true,
        execute: () => 'Paid.',
      })
      const agent = createAgent({ model: createOneCallModel('pay'), tools: [pay] })
      const desk = setup({ actors: { agent: agent.machine } }).createMachine({
        invoke: { id: 'agent', src: 'agent', input: () => agent.createInput('Pay what is due.') },
      })
      const { agent: child } = createActor(desk).start().getSnapshot().children
      if (!child) throw new Error('The machine has no child.')
      stage.studio.attach(child)
      await page.click('.session a:has-text("Pay what is due.")')
      await page.waitForSelector('.pending')
      expect((await shown()).active).toEqual(['WAITING_FOR_INPUT.approval'])
      await page.click('.pending button:has-text("Approve")')
      await page.waitForSelector('.run-title .pill.tone-good')
      expect((await shown()).active).toEqual(['COMPLETED'])
      await soon(() => page.locator('.message:has-text("Done.")').count()).toBe(1)
      expect(child.getSnapshot().status).toBe('done')
      // The page does not offer a fork that the studio would refuse.
      await soon(() => page.locator('.message .edit').count()).toBe(0)
    })
  })
}

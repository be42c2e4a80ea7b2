/** The manifests, against Kubernetes' own schemas: its validators for values, its types for fields that there are not. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Deployment } from 'kubernetes-models/apps/v1';
import { CronJob, Job } from 'kubernetes-models/batch/v1';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Service } from 'kubernetes-models/v1';
import { afterAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { requireServerConfig, parseServeArguments } from '#infra/node/arguments.ts';

const FOLDER = 'infra/kubernetes';
// oxlint-disable-next-line typescript/no-explicit-any -- what a file holds is compared, not typed
type Manifest = any;

const MODELS = { Deployment, CronJob, Job, Ingress, PodDisruptionBudget, ConfigMap, Service } as const;
const MODULES: Readonly<Record<keyof typeof MODELS, string>> = {
  Deployment: 'apps/v1',
  CronJob: 'batch/v1',
  Job: 'batch/v1',
  Ingress: 'networking.k8s.io/v1',
  PodDisruptionBudget: 'policy/v1',
  ConfigMap: 'v1',
  Service: 'v1',
};

const manifests: readonly Manifest[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) => parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')))
  .map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
const named = manifests.map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest] as const);
const ofKind = (kind: string): readonly Manifest[] => manifests.filter((manifest) => manifest.kind === kind);

function podOf({ kind, spec }: Manifest): Manifest {
  return (kind === 'CronJob' ? spec.jobTemplate.spec : spec).template.spec;
}
const pods = named
  .filter(([, { kind }]) => ['Deployment', 'CronJob', 'Job'].includes(kind))
  .map(([name, manifest]) => [name, podOf(manifest)] as const);

/** Where packages are found. */
const scratch = mkdtempSync('node_modules/.manifests-');
afterAll(() => rmSync(scratch, { recursive: true }));

/** What TypeScript says of these objects as literals, where a field too many is an error. */
function typeErrors(objects: readonly Manifest[]): string {
  const lines = objects.map((object, index) => {
    const { kind } = object as { kind: keyof typeof MODULES };
    const type = `import('kubernetes-models/${MODULES[kind]}').I${kind}`;
    return `export const object${index}: ${type} = ${JSON.stringify(object)};`;
  });
  const file = join(scratch, 'objects.ts');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', ''];
  return spawnSync('node_modules/.bin/tsc', [...options, file], { encoding: 'utf8' }).stdout;
}

test.each(named)('%s is valid', (_name, manifest) => {
  const Model = MODELS[manifest.kind as keyof typeof MODELS] as unknown as new (data: object) => { validate(): void };
  expect(() => new Model(manifest).validate()).not.toThrow();
});

test('no manifest has a field that Kubernetes does not know', () => {
  const wrong = structuredClone(ofKind('Deployment')[0]);
  wrong.spec.template.spec.containers[0].readinesProbe = {};
  expect(typeErrors([wrong])).toContain('readinesProbe');
  expect(typeErrors(manifests)).toBe('');
});

describe('every pod', () => {
  test.each(pods)('of %s is as little as it can be, and says what it needs', (_name, pod) => {
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    for (const { securityContext, resources, env } of pod.containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(resources).toMatchObject({
        requests: { cpu: expect.any(String), memory: expect.any(String) },
        limits: { memory: expect.any(String) },
      });
      // Secrets come by reference, and what is empty is not set.
      for (const { value = '' } of env) expect(value).toBe('');
    }
  });

  test.each(pods)('of %s runs a program that there is, with a configuration that it takes', (_name, pod) => {
    const [{ command, args, env }] = pod.containers;
    const { data } = ofKind('ConfigMap')[0];
    const given = Object.fromEntries(
      env.map(({ name }: { name: string }) => [name, 'postgres://app:secret@db/plumbline']),
    );
    const config = readConfig({ ...data, ...given }, { isTerminal: false });
    if (command) expect(readFileSync(command[1], 'utf8')).toContain('runCommand');
    else requireServerConfig(config, parseServeArguments(args));
  });

  test.each(pods)('of %s has the database by the login for what it does', (name, pod) => {
    const key = name === 'Job plumbline-set-up' ? 'owner-url' : 'server-url';
    expect(pod.containers[0].env).toContainEqual({
      name: 'DATABASE_URL',
      valueFrom: { secretKeyRef: { name: 'plumbline-database', key } },
    });
  });
});

describe('what refers to pods', () => {
  test.each(ofKind('Deployment').map((manifest) => [manifest.metadata.name, manifest] as const))(
    'of %s finds them, and asks at a port that they have',
    (name, { spec }) => {
      const { labels } = spec.template.metadata;
      expect(labels).toEqual(spec.selector.matchLabels);
      const budget = ofKind('PodDisruptionBudget').find(({ metadata }) => metadata.name === name);
      expect(budget.spec.selector.matchLabels).toEqual(labels);
      const [container] = spec.template.spec.containers;
      const ports = container.ports.map((port: { name: string }) => port.name);
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        expect(ports).toContain(container[probe].httpGet.port);
      }
      expect(container.livenessProbe.httpGet.path).toBe('/healthz');
      const service = ofKind('Service').find(({ metadata }) => metadata.name === name);
      if (!service) return;
      expect(service.spec.selector).toEqual(labels);
      for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort);
    },
  );

  test('the ingress leads to services that there are, and never to the private port', () => {
    const { paths } = ofKind('Ingress')[0].spec.rules[0].http;
    const services = ofKind('Service').map(({ metadata }) => metadata.name);
    for (const { backend } of paths) {
      expect(services).toContain(backend.service.name);
      expect(backend.service.port.name).toBe('public');
    }
  });

  test('a pod has longer to stop than its parts take', () => {
    const delay = Number(ofKind('ConfigMap')[0].data.STOP_DELAY_SECONDS);
    for (const { spec } of ofKind('Deployment')) {
      expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(delay + 8 + 8 + 30);
    }
  });
});

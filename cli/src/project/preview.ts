import { stringify, type Json, type JsonMap } from '../json/json.js';
import type { Plan } from './plan.js';

/** The plan as text, for `--preview`. */
export function describePlan(plan: Plan): string {
  const lines = ['Packages:'];
  for (const { name, parameters, annotations, dependencies, actions } of plan.packages.values()) {
    lines.push(`Name: ${name}`, ...values('bindings', parameters), ...values('annotation', annotations));
    for (const [label, { location }] of dependencies) {
      lines.push(`  * dependency: ${label}`, `    location: ${location}`);
    }
    lines.push('');
    for (const action of [...actions.values()].filter(({ isSequence }) => !isSequence)) {
      lines.push(`  * action: ${action.name}`, ...values('bindings', action.parameters));
      lines.push(...values('annotation', action.annotations));
    }
    lines.push('');
    for (const sequence of [...actions.values()].filter(({ isSequence }) => isSequence)) {
      lines.push(`  * sequence: ${sequence.name}`, ...values('annotation', sequence.annotations));
    }
    lines.push('');
  }
  lines.push('Triggers:');
  for (const { name, parameters, annotations } of plan.triggers.values()) {
    lines.push(`* trigger: ${name}`, ...values('bindings', parameters), ...values('annotation', annotations));
  }
  lines.push('', 'Rules');
  for (const { name, trigger, action, annotations } of plan.rules.values()) {
    lines.push(`* rule: ${name}`, ...values('annotation', annotations));
    lines.push(`    - trigger: ${trigger}`, `    - action: ${action}`);
  }
  return `${lines.join('\n')}\n\n`;
}

function values(title: string, map: JsonMap): string[] {
  return [`    ${title}: `, ...[...map].map(([name, value]) => `        - ${name} : ${shown(title, value)}`)];
}

function shown(title: string, value: Json): string {
  return title === 'annotation' && typeof value === 'string' ? value : stringify(value, 2);
}

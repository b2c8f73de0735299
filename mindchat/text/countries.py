"""Countries and the adjectives that stand for them: "France" is stated by "a French director".

Owns: the table. Does not own: where it applies (grounding.py: the relations of citizenship and origin only). Adjectives
that mean several countries (Korean, Irish of the North) are left with the one that a reader would name first, or out.
"""

from __future__ import annotations

from functools import lru_cache

from mindchat.text.folding import norm

RELATIONS = frozenset({"country_of_citizenship", "country_of_origin", "country"})
"""Predicates whose value is a country."""

_TABLE = """
United States: American, USA, US, U.S., United States of America
United Kingdom: British, UK, Britain, Great Britain
England: English
Scotland: Scottish
Wales: Welsh
Ireland: Irish
France: French
Germany: German
Italy: Italian
Spain: Spanish
Portugal: Portuguese
Netherlands: Dutch
Belgium: Belgian
Switzerland: Swiss
Austria: Austrian
Poland: Polish
Czech Republic: Czech
Slovakia: Slovak
Hungary: Hungarian
Romania: Romanian
Bulgaria: Bulgarian
Greece: Greek
Turkey: Turkish
Russia: Russian
Soviet Union: Soviet
Ukraine: Ukrainian
Lithuania: Lithuanian
Latvia: Latvian
Estonia: Estonian
Finland: Finnish
Sweden: Swedish
Norway: Norwegian
Denmark: Danish
Iceland: Icelandic
Serbia: Serbian
Croatia: Croatian
Slovenia: Slovene, Slovenian
Bosnia and Herzegovina: Bosnian
Albania: Albanian
North Macedonia: Macedonian
India: Indian
Pakistan: Pakistani
Bangladesh: Bangladeshi
Sri Lanka: Sri Lankan
Nepal: Nepalese, Nepali
China: Chinese
Hong Kong: Hong Kong
Japan: Japanese
South Korea: South Korean, Korean
North Korea: North Korean
Taiwan: Taiwanese
Vietnam: Vietnamese
Thailand: Thai
Philippines: Filipino, Philippine
Indonesia: Indonesian
Malaysia: Malaysian
Singapore: Singaporean
Iran: Iranian
Iraq: Iraqi
Israel: Israeli
Lebanon: Lebanese
Syria: Syrian
Egypt: Egyptian
Morocco: Moroccan
Algeria: Algerian
Tunisia: Tunisian
Nigeria: Nigerian
Ghana: Ghanaian
Kenya: Kenyan
South Africa: South African
Australia: Australian
New Zealand: New Zealander
Canada: Canadian
Mexico: Mexican
Cuba: Cuban
Brazil: Brazilian
Argentina: Argentine, Argentinian
Chile: Chilean
Peru: Peruvian
Colombia: Colombian
Venezuela: Venezuelan
Uruguay: Uruguayan
Ecuador: Ecuadorian
Bolivia: Bolivian
Paraguay: Paraguayan
Guatemala: Guatemalan
Honduras: Honduran
El Salvador: Salvadoran
Nicaragua: Nicaraguan
Costa Rica: Costa Rican
Panama: Panamanian
Dominican Republic: Dominican
Haiti: Haitian
Jamaica: Jamaican
Puerto Rico: Puerto Rican
Trinidad and Tobago: Trinidadian
Barbados: Barbadian
Luxembourg: Luxembourgish
Malta: Maltese
Cyprus: Cypriot
Monaco: Monegasque
Montenegro: Montenegrin
Kosovo: Kosovan
Moldova: Moldovan
Belarus: Belarusian
Georgia: Georgian
Armenia: Armenian
Azerbaijan: Azerbaijani
Kazakhstan: Kazakh
Uzbekistan: Uzbek
Mongolia: Mongolian
Cambodia: Cambodian
Myanmar: Burmese, Burma
Afghanistan: Afghan
Saudi Arabia: Saudi
Yemen: Yemeni
Jordan: Jordanian
Kuwait: Kuwaiti
Qatar: Qatari
Libya: Libyan
Sudan: Sudanese
Somalia: Somali
Ethiopia: Ethiopian
Uganda: Ugandan
Tanzania: Tanzanian
Zimbabwe: Zimbabwean
Zambia: Zambian
Cameroon: Cameroonian
Senegal: Senegalese
Ivory Coast: Ivorian
Angola: Angolan
Mozambique: Mozambican
Hong Kong: Hong Kong
East Germany: East German
West Germany: West German
"""


@lru_cache(maxsize=1)
def _forms() -> dict[str, tuple[str, ...]]:
    """Folded form → every form of that country, its name first."""
    table: dict[str, tuple[str, ...]] = {}
    for line in _TABLE.strip().splitlines():
        name, _, others = line.partition(": ")
        forms = (name, *(other.strip() for other in others.split(",")))
        for form in forms:
            table[norm(form)] = forms
    return table


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Every name and adjective of the table, as written."""
    return tuple(dict.fromkeys(form for forms in _forms().values() for form in forms))


def forms(text: str) -> tuple[str, ...]:
    """Other ways in which a passage may name this country; empty if it is none that the table knows."""
    return tuple(form for form in _forms().get(norm(text), ()) if norm(form) != norm(text))


def country_norm(text: str) -> str:
    """One normal form for "French" and "France"; that of the text itself if it is no known country."""
    known = _forms().get(norm(text))
    return norm(known[0]) if known else norm(text)
